// Whatever happens to a file, its reader either refuses it or gives tensors that lie inside it.
#include "weights/safetensors.h"
#include "weights/test_files.h"
#include "weights/torch_legacy.h"
#include "weights/torch_zip.h"

namespace quintet {
namespace {

using Parse = TensorFile (*)(std::span<const std::byte>, const std::string&);

// Copies the bytes to a block of their own size, so that a sanitizer sees any read past the end.
void check(Parse parse, const std::string& damaged) {
  const std::vector<std::byte> bytes(bytes_of(damaged).begin(), bytes_of(damaged).end());
  TensorFile file;
  if (!problem_of([&] { file = parse(bytes, "damaged"); }).empty()) return;
  for (const HostView& tensor : file.tensors) {
    const auto count = element_count(tensor.shape);
    ASSERT_TRUE(count.has_value());
    const size_t size = static_cast<size_t>(*count) * size_of(tensor.dtype);
    const auto begin = static_cast<size_t>(tensor.data - bytes.data());
    ASSERT_LE(begin, bytes.size());
    ASSERT_LE(size, bytes.size() - begin);
    values_of(tensor);
  }
}

void damage(Parse parse, const std::string& whole) {
  for (size_t i = 0; i < whole.size(); ++i) {
    check(parse, whole.substr(0, i));
    for (const int flip : {0x01, 0x80, 0xFF}) {
      std::string flipped = whole;
      flipped[i] = static_cast<char>(flipped[i] ^ flip);
      check(parse, flipped);
    }
  }
}

TEST(Damage, Safetensors) {
  damage(parse_safetensors,
         safetensors_of(R"({"__metadata__":{"format":"pt"},)"
                        R"("a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
                        R"("b":{"dtype":"BF16","shape":[],"data_offsets":[24,26]}})",
                        std::string(26, '\x3F')));
}

TEST(Damage, TorchZip) { damage(parse_torch_zip, fixture("zip.bin")); }

TEST(Damage, TorchLegacy) { damage(parse_torch_legacy, fixture("legacy.bin")); }

}  // namespace
}  // namespace quintet
