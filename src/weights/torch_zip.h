// What torch.save has written since version 1.6: a zip archive of stored entries, data.pkl with the
// pickled state dict and data/<key> with each storage.
#ifndef QUINTET_WEIGHTS_TORCH_ZIP_H_
#define QUINTET_WEIGHTS_TORCH_ZIP_H_

#include <cstddef>
#include <span>
#include <string>

#include "weights/tensor_file.h"

namespace quintet {

bool is_torch_zip(std::span<const std::byte> bytes);

// Throws Error(kFile) that begins with `where`. Runs nothing and reads no storage.
TensorFile parse_torch_zip(std::span<const std::byte> bytes, const std::string& where);

}  // namespace quintet

#endif  // QUINTET_WEIGHTS_TORCH_ZIP_H_
