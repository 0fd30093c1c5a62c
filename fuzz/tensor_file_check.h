// What every parser of weights promises, whatever it is fed: an Error, or views of its input.
#ifndef QUINTET_FUZZ_TENSOR_FILE_CHECK_H_
#define QUINTET_FUZZ_TENSOR_FILE_CHECK_H_

#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "core/error.h"
#include "weights/tensor_file.h"

namespace quintet {

using ParseWeights = TensorFile (*)(std::span<const std::byte> bytes, const std::string& where);

inline void check_weights(ParseWeights parse, const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  TensorFile file;
  try {
    file = parse(bytes, "fuzz");
  } catch (const Error&) {
    return;
  }
  for (const HostView& tensor : file.tensors) {
    const auto count = element_count(tensor.shape);
    const auto begin = static_cast<size_t>(tensor.data - bytes.data());
    if (!count || begin > size ||
        static_cast<size_t>(*count) * size_of(tensor.dtype) > size - begin) {
      std::abort();
    }
  }
}

}  // namespace quintet

#endif  // QUINTET_FUZZ_TENSOR_FILE_CHECK_H_
