// The weight formats quintet reads: one row each.
#ifndef QUINTET_WEIGHTS_REGISTRY_H_
#define QUINTET_WEIGHTS_REGISTRY_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "weights/tensor_file.h"

namespace quintet {

struct WeightFormat {
  std::string_view name;                                 // for people
  std::string_view file;                                 // a whole checkpoint in one file
  std::string_view index;                                // or the index of one in shards
  bool (*recognises)(std::span<const std::byte> bytes);  // among formats that share a file name
  TensorFile (*parse)(std::span<const std::byte> bytes, const std::string& where);
};

std::span<const WeightFormat> weight_formats();  // preferred ones first

}  // namespace quintet

#endif  // QUINTET_WEIGHTS_REGISTRY_H_
