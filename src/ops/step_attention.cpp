#include "ops/step_attention.h"

#include <algorithm>
#include <string_view>

#include "core/error.h"
#include "ops/cached.h"
#include "ops/checks.h"
#include "ops/norm.h"

namespace quintet::ops {
namespace {

using Slot = Workspace::Slot;

void check(std::string_view op, const Device& device, const Tensor& hidden,
           const StepAttentionWeights& weights, const AttentionArgs& args) {
  const int64_t inner = args.n_heads * args.d_kv;
  check_placement(op, "hidden", device, hidden);
  check_shape(op, "hidden", hidden, hidden.rows(), hidden.cols());
  check_weight(op, "q", device, weights.q, inner, hidden.cols());
  check_weight(op, "kv", device, weights.kv, 2 * inner, weights.kv.d_in());
  check_weight(op, "o", device, weights.o, hidden.cols(), inner);
}

void check_bias(std::string_view op, const Device& device, const Tensor& bias, int64_t n_heads,
                int64_t max_len) {
  if (!bias) return;
  check_placement(op, "position_bias", device, bias);
  check_shape(op, "position_bias", bias, n_heads, bias.cols());
  if (bias.cols() % 2 == 0 || bias.cols() < 2 * max_len - 1) {
    fail(ErrorKind::kUsage, "{}: position_bias has {} columns, expected an odd number from {} on",
         op, bias.cols(), 2 * max_len - 1);
  }
}

void check_cache(std::string_view op, const StepBatch& step, const StepTiles& tiles,
                 const KvCache* cache) {
  if (cache != nullptr) return;
  if (tiles.keeps || step.n_steps() > 0 || !step.copies.empty()) {
    fail(ErrorKind::kUsage, "{}: the step needs a cache, no pages were reserved", op);
  }
}

// K and V of all rows, [n_rows, 2 * inner].
Tensor keys_and_values(Workspace& workspace, const StepTiles& tiles, const Tensor& hidden,
                       const StepAttentionWeights& weights) {
  Tensor key_value = workspace.get(Slot::kKeyValue, hidden.rows(), weights.kv.d_out());
  const Tensor norms = workspace.get(Slot::kNorm, tiles.tiles.front().n_rows, hidden.cols());
  for (const StepTile& tile : tiles.tiles) {
    const Tensor x = norms.rows(0, tile.n_rows);
    norm(workspace.device(), hidden.rows(tile.first_row, tile.n_rows), weights.norm,
         weights.norm_bias, weights.eps, x);
    workspace.device().linear(x, weights.kv, {.bias = weights.kv_bias},
                              key_value.rows(tile.first_row, tile.n_rows));
  }
  return key_value;
}

// For each tile: attend(tile, q, y) from its queries to its context, whose product is added.
template <typename Attend>
void attend_by_tiles(Workspace& workspace, const StepTiles& tiles, const Tensor& hidden,
                     const StepAttentionWeights& weights, int64_t inner, bool has_norm,
                     const Attend& attend) {
  Device& device = workspace.device();
  const int64_t most = tiles.tiles.front().n_rows;
  const Tensor norms = workspace.get(Slot::kNorm, most, hidden.cols());
  const Tensor query = workspace.get(Slot::kQuery, most, inner);
  const Tensor context = workspace.get(Slot::kContext, most, inner);
  for (const StepTile& tile : tiles.tiles) {
    const Tensor rows = hidden.rows(tile.first_row, tile.n_rows);
    const Tensor x = norms.rows(0, tile.n_rows);
    const Tensor q = query.rows(0, tile.n_rows);
    const Tensor y = context.rows(0, tile.n_rows);
    if (!has_norm) norm(device, rows, weights.norm, weights.norm_bias, weights.eps, x);
    device.linear(x, weights.q, {.bias = weights.q_bias}, q);
    attend(tile, q, y);
    device.linear(y, weights.o, {.accumulate = true, .bias = weights.o_bias}, rows);
  }
}

}  // namespace

void step_self_attention_add(Workspace& workspace, const StepBatch& step, const MicroBatch& prompts,
                             const StepTiles& tiles, const Tensor& hidden,
                             const StepAttentionWeights& weights, const Tensor& position_bias,
                             const AttentionArgs& args, KvCache* cache) {
  constexpr auto kName = "step_self_attention";
  Device& device = workspace.device();
  check_cache(kName, step, tiles, cache);
  if (cache != nullptr) kv_copy(device, step.copies, *cache);
  if (tiles.tiles.empty()) return;
  const int64_t inner = args.n_heads * args.d_kv;
  check(kName, device, hidden, weights, args);
  check_bias(kName, device, position_bias, args.n_heads, tiles.max_len);

  const Tensor key_value = keys_and_values(workspace, tiles, hidden, weights);
  const Tensor key = key_value.columns(0, inner);
  const Tensor value = key_value.columns(inner, inner);
  if (tiles.keeps) kv_write(device, key, value, step.slots, *cache);

  const int64_t n_prompt_rows = prompts.n_tokens();
  const Tensor prompt_key = key.rows(0, n_prompt_rows);
  const Tensor prompt_value = value.rows(0, n_prompt_rows);
  AttentionArgs causal = args;
  causal.causal = true;
  const bool has_norm = tiles.tiles.size() == 1;  // from the keys
  attend_by_tiles(workspace, tiles, hidden, weights, inner, has_norm,
                  [&](const StepTile& tile, const Tensor& q, const Tensor& y) {
                    const int64_t n = tile.n_prompt_rows;
                    if (n > 0) {
                      device.attention(q.rows(0, n), prompt_key, prompt_value, position_bias,
                                       prompts, tile.first_row, causal, y.rows(0, n));
                    }
                    if (n == tile.n_rows) return;
                    cached_attention(device, q.rows(n, tile.n_rows - n), *cache, tile.self,
                                     position_bias, args, y.rows(n, tile.n_rows - n));
                  });
}

void keep_source(Workspace& workspace, const Tensor& source, std::span<const int32_t> slots,
                 const StepAttentionWeights& weights, const AttentionArgs& args, KvCache& cache) {
  constexpr auto kName = "keep_source";
  Device& device = workspace.device();
  const auto n_rows = static_cast<int64_t>(slots.size());
  if (n_rows == 0) return;
  const int64_t inner = args.n_heads * args.d_kv;
  check_placement(kName, "source", device, source);
  check_shape(kName, "source", source, n_rows, weights.kv.d_in());
  check_weight(kName, "kv", device, weights.kv, 2 * inner, weights.kv.d_in());
  const int64_t most = std::min(n_rows, kTileRows);
  const Tensor key_value = workspace.get(Slot::kKeyValue, most, 2 * inner);
  for (int64_t row = 0; row < n_rows; row += most) {
    const int64_t count = std::min(most, n_rows - row);
    const Tensor kv = key_value.rows(0, count);
    device.linear(source.rows(row, count), weights.kv, {.bias = weights.kv_bias}, kv);
    kv_write(device, kv.columns(0, inner), kv.columns(inner, inner),
             slots.subspan(static_cast<size_t>(row), static_cast<size_t>(count)), cache);
  }
}

void step_cross_attention_add(Workspace& workspace, const StepTiles& tiles, const Tensor& hidden,
                              const StepAttentionWeights& weights, const AttentionArgs& args,
                              const KvCache& cache) {
  constexpr auto kName = "step_cross_attention";
  if (tiles.tiles.empty()) return;
  Device& device = workspace.device();
  check(kName, device, hidden, weights, args);
  attend_by_tiles(workspace, tiles, hidden, weights, args.n_heads * args.d_kv, false,
                  [&](const StepTile& tile, const Tensor& q, const Tensor& y) {
                    cached_attention(device, q, cache, tile.cross, {}, args, y);
                  });
}

}  // namespace quintet::ops
