// What torch.save wrote before version 1.6: five pickles, one after the other (a magic number, the
// protocol, facts about the machine, the state dict, the storages' keys), then the storages, each
// with its number of elements before it.
#ifndef QUINTET_WEIGHTS_TORCH_LEGACY_H_
#define QUINTET_WEIGHTS_TORCH_LEGACY_H_

#include <cstddef>
#include <span>
#include <string>

#include "weights/tensor_file.h"

namespace quintet {

bool is_torch_legacy(std::span<const std::byte> bytes);

// Throws Error(kFile) that begins with `where`. Runs nothing and reads no storage's values.
TensorFile parse_torch_legacy(std::span<const std::byte> bytes, const std::string& where);

}  // namespace quintet

#endif  // QUINTET_WEIGHTS_TORCH_LEGACY_H_
