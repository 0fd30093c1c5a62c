// Files written by torch.save itself; tests/fixtures/weights/README.md says how.
#include "weights/torch_zip.h"

#include "weights/test_files.h"
#include "weights/torch_legacy.h"

namespace quintet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

std::string problem(const std::string& name) {
  const std::string file = fixture(name);
  return problem_of([&] { parse_torch_zip(bytes_of(file), name); });
}

class TorchFile : public testing::TestWithParam<const char*> {};

TEST_P(TorchFile, HoldsWhatWasSaved) {
  const std::string bytes = fixture(GetParam());
  const bool is_zip = is_torch_zip(bytes_of(bytes));
  EXPECT_NE(is_zip, is_torch_legacy(bytes_of(bytes)));
  const TensorFile file = is_zip ? parse_torch_zip(bytes_of(bytes), GetParam())
                                 : parse_torch_legacy(bytes_of(bytes), GetParam());
  EXPECT_EQ(file.tensors.size(), 9U);

  const HostView& plain = tensor_in(file, "plain");
  EXPECT_THAT(plain.shape, ElementsAre(2, 3));
  EXPECT_THAT(values_of(plain), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_EQ(tensor_in(file, "tied").data, plain.data);
  EXPECT_EQ(tensor_in(file, "half").dtype, DType::kFloat16);
  EXPECT_THAT(values_of(tensor_in(file, "half")), ElementsAre(0.5F, -2.0F, 65504.0F));
  EXPECT_EQ(tensor_in(file, "brain").dtype, DType::kBFloat16);
  EXPECT_THAT(tensor_in(file, "brain").shape, ElementsAre(2, 1));
  EXPECT_THAT(values_of(tensor_in(file, "brain")), ElementsAre(1.5F, -3.0F));
  EXPECT_THAT(values_of(tensor_in(file, "parameter")), ElementsAre(7, 7, 7, 7));
  EXPECT_THAT(tensor_in(file, "view").shape, ElementsAre(3, 2));
  EXPECT_THAT(values_of(tensor_in(file, "view")), ElementsAre(2, 3, 4, 5, 6, 7));
  EXPECT_THAT(values_of(tensor_in(file, "rest_of_view")), ElementsAre(8, 9));
  EXPECT_TRUE(tensor_in(file, "scalar").shape.empty());
  EXPECT_THAT(values_of(tensor_in(file, "scalar")), ElementsAre(4.25F));
  EXPECT_THAT(tensor_in(file, "empty").shape, ElementsAre(2, 0));
  EXPECT_THAT(file.skipped,
              UnorderedElementsAre(Pair("ids", "is stored as torch.LongStorage"),
                                   Pair("mask", "is stored as torch.BoolStorage"),
                                   Pair("wide", "is stored as torch.DoubleStorage"),
                                   Pair("byte_float", "is stored as torch.float8_e4m3fn")));

  // Views of the bytes handed in, not copies.
  for (const HostView& tensor : file.tensors) {
    EXPECT_GE(tensor.data, bytes_of(bytes).data());
    EXPECT_LE(tensor.data, bytes_of(bytes).data() + bytes.size());
  }
}

INSTANTIATE_TEST_SUITE_P(Saved, TorchFile,
                         testing::Values("zip.bin", "zip_protocol4.bin", "no_byteorder.bin",
                                         "legacy.bin"),
                         [](const auto& info) {
                           const std::string name = info.param;
                           return name.substr(0, name.find('.'));
                         });

TEST(TorchZip, RefusesByName) {
  EXPECT_THAT(problem("transposed.bin"), HasSubstr("'turned' is [3, 2] with strides [1, 3]"));
  EXPECT_THAT(problem("slice.bin"), HasSubstr("'slice' is [4, 2] with strides [4, 1]"));
  EXPECT_THAT(problem("module.bin"), HasSubstr("asks for torch.nn.modules.linear.Linear: refused"));
  EXPECT_THAT(problem("compressed.bin"), HasSubstr("compressed"));
  EXPECT_THAT(problem("big_endian.bin"), HasSubstr("byte order 'big'"));
  EXPECT_THAT(problem("short_storage.bin"), HasSubstr("storage '0' has 23 bytes"));
  EXPECT_THAT(problem("huge_storage.bin"), HasSubstr("1099511627776 x torch.FloatStorage"));
}

TEST(TorchZip, NeverRunsWhatAPickleAsksFor) {
  EXPECT_THAT(problem("malicious.bin"), HasSubstr("asks for posix.system: refused"));
  EXPECT_FALSE(std::filesystem::exists("quintet_pickle_ran"));
}

}  // namespace
}  // namespace quintet
