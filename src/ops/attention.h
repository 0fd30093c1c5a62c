// Attention blocks over a packed batch, row tile by row tile.
#ifndef QUINTET_OPS_ATTENTION_H_
#define QUINTET_OPS_ATTENTION_H_

#include "backends/device.h"
#include "core/micro_batch.h"
#include "core/tensor.h"
#include "ops/workspace.h"

namespace quintet::ops {

struct SelfAttentionWeights {
  const Tensor& norm;  // [1, d_model]
  const Weight& q;     // [inner, d_model], inner = n_heads * d_kv
  const Weight& kv;    // [2 * inner, d_model]: K's rows above V's
  const Weight& o;     // [d_model, inner]
};

// hidden += o(attention(rms_norm(hidden))), hidden: [n_tokens, d_model]; position_bias as in
// Device::attention, or an empty tensor for none. K and V of the whole batch stand at once; the
// norm's output, Q and the context only for
// Workspace::tile_rows() rows.
void self_attention_add(Workspace& workspace, const MicroBatch& batch, const Tensor& hidden,
                        const SelfAttentionWeights& weights, float eps, const Tensor& position_bias,
                        const AttentionArgs& args);

}  // namespace quintet::ops

#endif  // QUINTET_OPS_ATTENTION_H_
