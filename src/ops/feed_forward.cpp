#include "ops/feed_forward.h"

#include <algorithm>

#include "ops/checks.h"
#include "ops/norm.h"

namespace quintet::ops {

void feed_forward_add(Workspace& workspace, const Tensor& hidden, const FeedForwardWeights& weights,
                      float eps, Activation activation) {
  constexpr auto kName = "feed_forward";
  using Slot = Workspace::Slot;
  if (hidden.empty()) return;
  Device& device = workspace.device();
  const int64_t d_ff = weights.wi.d_out();
  check_placement(kName, "hidden", device, hidden);
  check_weight(kName, "wi", device, weights.wi, d_ff, hidden.cols());
  check_weight(kName, "wo", device, weights.wo, hidden.cols(), d_ff);

  const int64_t tile = workspace.tile_rows(hidden.rows());
  const Tensor norm = workspace.get(Slot::kNorm, tile, hidden.cols());
  const Tensor activated = workspace.get(Slot::kActivation, tile, d_ff);
  for (int64_t row = 0; row < hidden.rows(); row += tile) {
    const int64_t count = std::min(tile, hidden.rows() - row);
    const Tensor rows = hidden.rows(row, count);
    const Tensor x = norm.rows(0, count);
    const Tensor y = activated.rows(0, count);
    ops::norm(device, rows, weights.norm, weights.norm_bias, eps, x);
    device.linear(x, weights.wi, {.activation = activation, .bias = weights.wi_bias}, y);
    device.linear(y, weights.wo, {.accumulate = true, .bias = weights.wo_bias}, rows);
  }
}

}  // namespace quintet::ops
