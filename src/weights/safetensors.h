// The safetensors format: 8 bytes of header size, a JSON header that gives each tensor's type,
// shape and place, then the tensors' bytes without a gap.
#ifndef QUINTET_WEIGHTS_SAFETENSORS_H_
#define QUINTET_WEIGHTS_SAFETENSORS_H_

#include <cstddef>
#include <span>
#include <string>

#include "weights/tensor_file.h"

namespace quintet {

// Throws Error(kFile) that begins with `where` and names the tensor and the rule it breaks. Reads
// the header alone; takes memory in proportion to the number of tensors.
TensorFile parse_safetensors(std::span<const std::byte> bytes, const std::string& where);

}  // namespace quintet

#endif  // QUINTET_WEIGHTS_SAFETENSORS_H_
