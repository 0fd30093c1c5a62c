#include "models/weight_scope.h"

#include "core/error.h"
#include "ops/weights.h"

namespace quintet {
namespace {

// The file that holds the tensor, or else the checkpoint's folder.
std::string file_of(const Checkpoint& checkpoint, const HostView& view) {
  return (view.file == nullptr ? checkpoint.folder() : view.file->path()).string();
}

}  // namespace

std::string shape_text(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

WeightScope WeightScope::scope(std::string_view name) const {
  WeightScope inner = *this;
  inner.prefix_ += name;
  return inner;
}

const HostView& WeightScope::view(std::string_view name, const Shape& shape) const {
  const std::string full = prefix_ + std::string(name);
  const auto found = checkpoint_->tensors().find(full);
  if (found == checkpoint_->tensors().end()) {
    fail(ErrorKind::kFile, "{}: {}; config.json implies one of {}", checkpoint_->folder().string(),
         checkpoint_->why_absent(full), shape_text(shape));
  }
  const HostView& view = found->second;
  if (view.shape != shape) {
    fail(ErrorKind::kFile, "{}: '{}' is {}, config.json implies {}", file_of(*checkpoint_, view),
         full, shape_text(view.shape), shape_text(shape));
  }
  if (used_ != nullptr) used_->insert(full);
  return view;
}

std::unique_ptr<Weight> WeightScope::load(std::string_view name, const Shape& shape) const {
  return load_stacked({name}, shape);
}

std::unique_ptr<Weight> WeightScope::load_stacked(std::initializer_list<std::string_view> names,
                                                  const Shape& shape, bool gated) const {
  std::vector<HostView> parts;
  for (const auto name : names) parts.push_back(view(name, shape));
  if (checks_only()) return nullptr;
  return ops::pack(*device_, parts, {.dtype = dtype_, .gated = gated});
}

std::unique_ptr<Weight> WeightScope::load_transposed(std::string_view name, const Shape& shape,
                                                     int64_t first_column,
                                                     int64_t n_columns) const {
  const HostView& matrix = view(name, shape);
  if (checks_only()) return nullptr;
  return ops::pack(
      *device_, {&matrix, 1},
      {.dtype = dtype_, .transposed = true, .first_column = first_column, .n_columns = n_columns});
}

Tensor WeightScope::load_table(std::string_view name, const Shape& shape) const {
  const HostView& matrix = view(name, shape);
  return checks_only() ? Tensor() : ops::upload_table(*device_, matrix, dtype_);
}

Tensor WeightScope::load_vector(std::string_view name, int64_t n) const {
  const HostView& vector = view(name, {n});
  return checks_only() ? Tensor() : ops::upload_vector(*device_, vector);
}

}  // namespace quintet
