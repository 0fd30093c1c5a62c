#include "ops/workspace.h"

#include <algorithm>

#include "core/row_stride.h"

namespace quintet::ops {

Tensor Workspace::get(Slot slot, int64_t rows, int64_t cols) {
  Tensor& kept = slots_[static_cast<size_t>(slot)];
  if (!kept || kept.rows() < rows || kept.cols() != cols) {
    // The old buffer goes back before the new one comes, or the two would stand side by side.
    if (kept) {
      kept = Tensor();
      device_->empty_cache();
    }
    kept = device_->allocate(rows, cols);
  }
  return kept.rows(0, rows);
}

int64_t ActivationBytes::of(int64_t n_tokens) const {
  return per_token * n_tokens + per_tile_row * std::min(n_tokens, kTileRows);
}

ActivationBytes activation_bytes(int64_t d_model, int64_t inner, int64_t d_ff) {
  constexpr auto kSize = static_cast<int64_t>(sizeof(float));
  const auto row = [](int64_t cols) { return kSize * row_stride(cols); };
  return {.per_token = row(d_model) + row(2 * inner),  // hidden; K and V
                                                       // norm; Q and context; wi's output
          .per_tile_row = row(d_model) + 2 * row(inner) + row(d_ff)};
}

}  // namespace quintet::ops
