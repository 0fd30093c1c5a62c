// What the reader of each format makes of one weight file: its tensors, as views of its bytes.
#ifndef QUINTET_WEIGHTS_TENSOR_FILE_H_
#define QUINTET_WEIGHTS_TENSOR_FILE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/host_view.h"

namespace quintet {

struct TensorFile {
  std::vector<HostView> tensors;                             // `file` is not set
  std::vector<std::pair<std::string, std::string>> skipped;  // name -> why nobody can use it
};

// Elements of `shape`; nothing where a dimension is negative or the product of the dimensions that
// are not 0 is over 2^56, so that sizes in bits and bytes never overflow.
std::optional<int64_t> element_count(std::span<const int64_t> shape);

std::string shape_text(std::span<const int64_t> shape);  // "[2, 3]"

// Text of a file as it may stand in a message: cut at 80 bytes, what is not printable ASCII as '?'.
std::string printable(std::string_view text);

}  // namespace quintet

#endif  // QUINTET_WEIGHTS_TENSOR_FILE_H_
