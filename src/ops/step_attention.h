// A decoder block's attention over a step, row tile by row tile: prompts attend to themselves, the
// rows of sequences under way to what the caches hold.
#ifndef QUINTET_OPS_STEP_ATTENTION_H_
#define QUINTET_OPS_STEP_ATTENTION_H_

#include <span>

#include "backends/device.h"
#include "core/micro_batch.h"
#include "core/step_batch.h"
#include "core/tensor.h"
#include "ops/step_tiles.h"
#include "ops/workspace.h"

namespace quintet::ops {

// inner = n_heads * d_kv. Biases are [1, d_out], or empty: none.
struct StepAttentionWeights {
  const Tensor& norm;     // [1, d_model]
  Tensor norm_bias = {};  // see ops::norm
  const Weight& q;        // [inner, d_model]
  Tensor q_bias = {};
  const Weight& kv;  // [2 * inner, d_model]: K's rows above V's; cross-attention's of the source
  Tensor kv_bias = {};
  const Weight& o;  // [d_model, inner]
  Tensor o_bias = {};
  float eps = 0;
};

// hidden += o(attention(norm(hidden))), hidden: [n_rows, d_model]. Copies the step's pages first,
// then keeps keys and values where the step says. position_bias as in Device::attention, or empty.
// `tiles` are cut from the step with `prompts`; cache: null where it has no pages.
void step_self_attention_add(Workspace& workspace, const StepBatch& step, const MicroBatch& prompts,
                             const StepTiles& tiles, const Tensor& hidden,
                             const StepAttentionWeights& weights, const Tensor& position_bias,
                             const AttentionArgs& args, KvCache* cache);

// Keeps the keys and values of the encoder's rows that come with a step; source: [n, d_model of the
// encoder], n = slots.size().
void keep_source(Workspace& workspace, const Tensor& source, std::span<const int32_t> slots,
                 const StepAttentionWeights& weights, const AttentionArgs& args, KvCache& cache);

// hidden += o(attention(norm(hidden))) over what keep_source() has kept, without a position bias.
void step_cross_attention_add(Workspace& workspace, const StepTiles& tiles, const Tensor& hidden,
                              const StepAttentionWeights& weights, const AttentionArgs& args,
                              const KvCache& cache);

}  // namespace quintet::ops

#endif  // QUINTET_OPS_STEP_ATTENTION_H_
