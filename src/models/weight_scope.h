// The tensors of a checkpoint under one prefix, on their way to one device. Every load checks the
// shape that the config implies and tells names and numbers on both sides where it is another. A
// scope without a device only checks, from the headers alone, and its loads give nothing.
#ifndef QUINTET_MODELS_WEIGHT_SCOPE_H_
#define QUINTET_MODELS_WEIGHT_SCOPE_H_

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "backends/device.h"
#include "core/host_view.h"
#include "core/tensor.h"
#include "weights/checkpoint.h"

namespace quintet {

using Shape = std::vector<int64_t>;

// "[512, 384]"
std::string shape_text(const Shape& shape);

class WeightScope {
 public:
  using Names = std::set<std::string, std::less<>>;

  WeightScope(const Checkpoint& checkpoint, std::string prefix, Device& device, DType dtype)
      : checkpoint_(&checkpoint), prefix_(std::move(prefix)), device_(&device), dtype_(dtype) {}

  // Only checks; the full names of what is asked for go to `used`.
  WeightScope(const Checkpoint& checkpoint, std::string prefix, Names& used)
      : checkpoint_(&checkpoint), prefix_(std::move(prefix)), used_(&used) {}

  bool checks_only() const { return device_ == nullptr; }

  // The same with `name` behind the prefix: scope("layer.0.") of "encoder.block.3.".
  WeightScope scope(std::string_view name) const;

  // Throws Error(kFile) where the tensor is not there or has another shape.
  const HostView& view(std::string_view name, const Shape& shape) const;

  // A matrix [d_out, d_in] in the scope's dtype.
  std::unique_ptr<Weight> load(std::string_view name, const Shape& shape) const;
  // Several of one shape, one below the other; gated: the second multiplies the first's output.
  std::unique_ptr<Weight> load_stacked(std::initializer_list<std::string_view> names,
                                       const Shape& shape, bool gated = false) const;
  // Columns [first_column, first_column + n_columns) of a matrix that the file holds as [d_in,
  // d_out], shape; all of them where n_columns is 0.
  std::unique_ptr<Weight> load_transposed(std::string_view name, const Shape& shape,
                                          int64_t first_column = 0, int64_t n_columns = 0) const;
  // A matrix whose rows are looked up, in the scope's dtype.
  Tensor load_table(std::string_view name, const Shape& shape) const;
  // A vector of n numbers as [1, n] float32.
  Tensor load_vector(std::string_view name, int64_t n) const;

 private:
  const Checkpoint* checkpoint_;
  std::string prefix_;
  Device* device_ = nullptr;
  DType dtype_ = DType::kFloat32;
  Names* used_ = nullptr;
};

}  // namespace quintet

#endif  // QUINTET_MODELS_WEIGHT_SCOPE_H_
