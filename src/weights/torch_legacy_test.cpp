// What the file of torch.save must hold is checked in torch_zip_test.cpp for both containers.
#include "weights/torch_legacy.h"

#include "weights/test_files.h"

namespace quintet {
namespace {

using testing::HasSubstr;
using namespace std::string_literals;

std::string problem(const std::string& file) {
  return problem_of([&] { parse_torch_legacy(bytes_of(file), "x.bin"); });
}

// legacy.bin with the first `from` replaced by `to`, of any length.
std::string changed(const std::string& from, const std::string& to) {
  std::string file = fixture("legacy.bin");
  const size_t at = file.find(from);
  EXPECT_NE(at, std::string::npos);
  return file.replace(at, from.size(), to);
}

TEST(TorchLegacy, NeverRunsWhatAPickleAsksFor) {
  EXPECT_THAT(problem(fixture("legacy_malicious.bin")), HasSubstr("posix.system: refused"));
  EXPECT_FALSE(std::filesystem::exists("quintet_pickle_ran"));
}

TEST(TorchLegacy, RefusesOtherPickles) {
  EXPECT_THAT(problem("\x80\x02K\x01."s), HasSubstr("a pickle, but not of torch.save"));
  EXPECT_THAT(problem(changed("\x80\x02M\xe9\x03."s, "\x80\x02M\xea\x03."s)),
              HasSubstr("protocol 1002"));
  EXPECT_THAT(problem(changed("little_endianq\x02\x88"s, "little_endianq\x02\x89"s)),
              HasSubstr("big-endian"));
}

TEST(TorchLegacy, ChecksStorages) {
  const std::string whole = fixture("legacy.bin");
  EXPECT_THAT(problem(whole + "x"), HasSubstr("1 bytes after the last storage"));
  EXPECT_THAT(problem(whole.substr(0, whole.size() - 1)), HasSubstr("cut short"));
  // "plain" claims 2^40 elements: the storage itself says 6.
  EXPECT_THAT(problem(changed("K\x06Nt"s, "\x8a\x06\x00\x00\x00\x00\x00\x01Nt"s)),
              HasSubstr("the state dict says 1099511627776"));
  // "plain" has a view that ends behind its storage.
  EXPECT_THAT(problem(changed("K\x06Nt"s, "K\x06(X\x01\x00\x00\x00vK\x02K\x05tt"s)),
              HasSubstr("'plain' has a view that leaves its storage"));
}

TEST(TorchLegacy, ReadsViewsOfOldVersions) {
  // The storage of "plain", as a view of its elements 0 to 6 of 6.
  const std::string file = changed("K\x06Nt"s, "K\x06(X\x01\x00\x00\x00vK\x00K\x06tt"s);
  const TensorFile read = parse_torch_legacy(bytes_of(file), "x.bin");
  EXPECT_THAT(values_of(tensor_in(read, "plain")), testing::ElementsAre(0, 1, 2, 3, 4, 5));
}

}  // namespace
}  // namespace quintet
