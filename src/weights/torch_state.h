// A pickled state_dict: which tensors it names and where in which storage each of them lies. What
// the two containers of torch.save, torch_zip and torch_legacy, have in common.
#ifndef QUINTET_WEIGHTS_TORCH_STATE_H_
#define QUINTET_WEIGHTS_TORCH_STATE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weights/pickle.h"
#include "weights/tensor_file.h"

namespace quintet {

struct TorchStorage {
  std::string_view key;   // of the pickle's bytes: the name of its data in the container
  std::string_view type;  // "torch.FloatStorage"
  size_t item_size = 0;
  std::optional<DType> dtype;  // none: of a type that nobody can use
  int64_t size = 0;            // elements

  int64_t bytes() const { return size * static_cast<int64_t>(item_size); }
};

struct TorchTensor {
  std::string name;
  size_t storage = 0;
  int64_t begin = 0;  // elements from the start of the storage
  std::vector<int64_t> shape = {};
};

struct TorchState {
  std::vector<TorchStorage> storages;
  std::vector<TorchTensor> tensors;                          // float32, bfloat16, float16
  std::vector<std::pair<std::string, std::string>> skipped;  // name -> why
};

// Reads the pickle at the start of `bytes`, which must describe a dict of tensors. Refuses, by
// name, tensors that leave their storage or are not contiguous and row-major. `pickle_size`: bytes
// read.
TorchState read_torch_state(std::span<const std::byte> bytes, const std::string& where,
                            size_t* pickle_size = nullptr);

// The tensors of `state` as views of the storages' bytes, which are in the order of state.storages
// and of their exact sizes.
TensorFile bind_storages(TorchState state, std::span<const std::span<const std::byte>> storages);

}  // namespace quintet

#endif  // QUINTET_WEIGHTS_TORCH_STATE_H_
