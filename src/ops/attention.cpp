#include "ops/attention.h"

#include <algorithm>

#include "core/error.h"
#include "ops/checks.h"
#include "ops/rows.h"

namespace quintet::ops {
namespace {

constexpr auto kName = "self_attention";

void check(const Device& device, const MicroBatch& batch, const Tensor& hidden,
           const SelfAttentionWeights& weights, const Tensor& position_bias,
           const AttentionArgs& args) {
  const int64_t inner = args.n_heads * args.d_kv;
  check_batch(kName, batch);
  check_placement(kName, "hidden", device, hidden);
  check_shape(kName, "hidden", hidden, batch.n_tokens(), hidden.cols());
  check_shape(kName, "norm", weights.norm, 1, hidden.cols());
  check_weight(kName, "q", device, weights.q, inner, hidden.cols());
  check_weight(kName, "kv", device, weights.kv, 2 * inner, hidden.cols());
  check_weight(kName, "o", device, weights.o, hidden.cols(), inner);
  if (!position_bias) return;
  check_placement(kName, "position_bias", device, position_bias);
  check_shape(kName, "position_bias", position_bias, args.n_heads, position_bias.cols());
  if (position_bias.cols() % 2 == 0 || position_bias.cols() < 2 * int64_t{batch.max_len} - 1) {
    fail(ErrorKind::kUsage, "{}: position_bias has {} columns, expected an odd number from {} on",
         kName, position_bias.cols(), 2 * int64_t{batch.max_len} - 1);
  }
}

}  // namespace

void self_attention_add(Workspace& workspace, const MicroBatch& batch, const Tensor& hidden,
                        const SelfAttentionWeights& weights, float eps, const Tensor& position_bias,
                        const AttentionArgs& args) {
  using Slot = Workspace::Slot;
  Device& device = workspace.device();
  const int64_t n_tokens = batch.n_tokens();
  if (n_tokens == 0) return;
  check(device, batch, hidden, weights, position_bias, args);

  const int64_t inner = args.n_heads * args.d_kv;
  const int64_t tile = workspace.tile_rows(n_tokens);
  const Tensor norm = workspace.get(Slot::kNorm, tile, hidden.cols());
  const Tensor key_value = workspace.get(Slot::kKeyValue, n_tokens, 2 * inner);
  for (int64_t row = 0; row < n_tokens; row += tile) {
    const int64_t count = std::min(tile, n_tokens - row);
    const Tensor x = norm.rows(0, count);
    rms_norm(device, hidden.rows(row, count), weights.norm, eps, x);
    device.linear(x, weights.kv, {}, key_value.rows(row, count));
  }

  const Tensor key = key_value.columns(0, inner);
  const Tensor value = key_value.columns(inner, inner);
  const Tensor query = workspace.get(Slot::kQuery, tile, inner);
  const Tensor context = workspace.get(Slot::kContext, tile, inner);
  for (int64_t row = 0; row < n_tokens; row += tile) {
    const int64_t count = std::min(tile, n_tokens - row);
    const Tensor x = norm.rows(0, count);
    // A single tile still has its norm from above.
    if (tile < n_tokens) rms_norm(device, hidden.rows(row, count), weights.norm, eps, x);
    const Tensor q = query.rows(0, count);
    const Tensor y = context.rows(0, count);
    device.linear(x, weights.q, {}, q);
    device.attention(q, key, value, position_bias, batch, row, args, y);
    device.linear(y, weights.o, {.accumulate = true}, hidden.rows(row, count));
  }
}

}  // namespace quintet::ops
