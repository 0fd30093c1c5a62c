#include "ops/workspace.h"

#include <algorithm>

#include "core/row_stride.h"

namespace quintet::ops {

Workspace Workspace::share(int64_t first_row, int64_t n_rows, int64_t n_tokens) const {
  const int64_t tile = std::min(n_tokens, kTileRows);
  const int64_t tile_begin = first_row * tile / n_tokens;
  const int64_t tile_end = (first_row + n_rows) * tile / n_tokens;
  Workspace share = *this;
  share.tokens_ = {first_row, n_rows, n_tokens};
  share.tile_ = {tile_begin, tile_end - tile_begin, tile};
  return share;
}

int64_t Workspace::tile_rows(int64_t n_tokens) const {
  return std::min(n_tokens, tile_.of > 0 ? tile_.count : kTileRows);
}

Tensor Workspace::get(Slot slot, int64_t rows, int64_t cols) {
  const Share& share = slot == Slot::kKeyValue ? tokens_ : tile_;
  const int64_t all_rows = std::max(rows, share.of);
  const std::scoped_lock lock(slots_->mutex);
  Tensor& kept = slots_->tensors[static_cast<size_t>(slot)];
  if (!kept || kept.rows() < all_rows || kept.cols() != cols) {
    // The old buffer goes back before the new one comes, or the two would stand side by side.
    if (kept) {
      kept = Tensor();
      device_->empty_cache();
    }
    kept = device_->allocate(all_rows, cols);
  }
  return kept.rows(share.first, rows);
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
