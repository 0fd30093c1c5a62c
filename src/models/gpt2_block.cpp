#include "models/gpt2_block.h"

#include "ops/cached.h"
#include "ops/feed_forward.h"
#include "ops/step_attention.h"

namespace quintet {

Gpt2Norm::Gpt2Norm(const WeightScope& weights, const std::string& name, int64_t n)
    : weight(weights.load_vector(name + ".weight", n)),
      bias(weights.load_vector(name + ".bias", n)) {}

Gpt2Block::Gpt2Block(const Gpt2Config& c, const WeightScope& weights, int64_t block)
    : eps_(c.eps),
      activation_(c.activation),
      args_{.n_heads = c.n_heads, .d_kv = c.d_kv(), .scale = c.score_scale(block)},
      attention_norm_(weights, "ln_1", c.d_model),
      q_(weights.load_transposed("attn.c_attn.weight", {c.d_model, 3 * c.d_model}, 0, c.d_model)),
      kv_(weights.load_transposed("attn.c_attn.weight", {c.d_model, 3 * c.d_model}, c.d_model,
                                  2 * c.d_model)),
      qkv_bias_(weights.load_vector("attn.c_attn.bias", 3 * c.d_model)),
      o_(weights.load_transposed("attn.c_proj.weight", {c.d_model, c.d_model})),
      o_bias_(weights.load_vector("attn.c_proj.bias", c.d_model)),
      feed_forward_norm_(weights, "ln_2", c.d_model),
      wi_(weights.load_transposed("mlp.c_fc.weight", {c.d_model, c.d_ff})),
      wi_bias_(weights.load_vector("mlp.c_fc.bias", c.d_ff)),
      wo_(weights.load_transposed("mlp.c_proj.weight", {c.d_ff, c.d_model})),
      wo_bias_(weights.load_vector("mlp.c_proj.bias", c.d_model)) {}

void Gpt2Block::reserve(Device& device, const KvShape& shape, int64_t n_pages) {
  cache_.reset();
  if (n_pages > 0) cache_ = ops::make_kv_cache(device, shape, n_pages);
}

void Gpt2Block::forward(ops::Workspace& workspace, const StepBatch& step, const MicroBatch& prompts,
                        const ops::StepTiles& tiles, const Tensor& hidden) {
  const int64_t d_model = args_.n_heads * args_.d_kv;
  ops::step_self_attention_add(workspace, step, prompts, tiles, hidden,
                               {.norm = attention_norm_.weight,
                                .norm_bias = attention_norm_.bias,
                                .q = *q_,
                                .q_bias = qkv_bias_.columns(0, d_model),
                                .kv = *kv_,
                                .kv_bias = qkv_bias_.columns(d_model, 2 * d_model),
                                .o = *o_,
                                .o_bias = o_bias_,
                                .eps = eps_},
                               {}, args_, cache_.get());
  if (tiles.tiles.empty()) return;
  ops::feed_forward_add(workspace, hidden,
                        {.norm = feed_forward_norm_.weight,
                         .wi = *wi_,
                         .wo = *wo_,
                         .norm_bias = feed_forward_norm_.bias,
                         .wi_bias = wi_bias_,
                         .wo_bias = wo_bias_},
                        eps_, activation_);
}

}  // namespace quintet
