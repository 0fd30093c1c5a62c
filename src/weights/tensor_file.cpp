#include "weights/tensor_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace quintet {

std::optional<int64_t> element_count(std::span<const int64_t> shape) {
  constexpr int64_t kMax = int64_t{1} << 56;
  int64_t product = 1;
  bool empty = false;
  for (const int64_t dim : shape) {
    if (dim < 0) return std::nullopt;
    if (dim == 0) {
      empty = true;
    } else if (product > kMax / dim) {
      return std::nullopt;
    } else {
      product *= dim;
    }
  }
  return empty ? 0 : product;
}

std::string shape_text(std::span<const int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::string printable(std::string_view text) {
  constexpr size_t kMax = 80;
  std::string out(text.substr(0, kMax));
  std::replace_if(
      out.begin(), out.end(), [](char c) { return c < 0x20 || c > 0x7E; }, '?');
  return text.size() > kMax ? out + "..." : out;
}

}  // namespace quintet
