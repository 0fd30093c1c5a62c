// The feed-forward half of a block, row tile by row tile.
#ifndef QUINTET_OPS_FEED_FORWARD_H_
#define QUINTET_OPS_FEED_FORWARD_H_

#include "backends/device.h"
#include "core/tensor.h"
#include "ops/workspace.h"

namespace quintet::ops {

struct FeedForwardWeights {
  const Tensor& norm;     // [1, d_model]
  const Weight& wi;       // [d_ff, d_model]; or gated, wi_0 above wi_1, [2 * d_ff, d_model]
  const Weight& wo;       // [d_model, d_ff]
  Tensor norm_bias = {};  // see ops::norm
  Tensor wi_bias = {};    // [1, d_ff], or empty: none; not with a gate
  Tensor wo_bias = {};    // [1, d_model], or empty: none
};

// hidden += wo(activation(wi(x))), or wo(activation(wi_0(x)) * wi_1(x)) where wi is gated, with x =
// norm(hidden); hidden: [n_tokens, d_model]. The d_ff wide part stands for Workspace::tile_rows()
// rows only.
void feed_forward_add(Workspace& workspace, const Tensor& hidden, const FeedForwardWeights& weights,
                      float eps, Activation activation);

}  // namespace quintet::ops

#endif  // QUINTET_OPS_FEED_FORWARD_H_
