#include "models/t5_block.h"

#include "core/error.h"
#include "ops/attention.h"
#include "ops/cached.h"
#include "ops/feed_forward.h"
#include "ops/step_attention.h"

namespace quintet {

std::unique_ptr<RelativeBias> load_relative_bias(const T5Config& config,
                                                 const WeightScope& attention, bool bidirectional) {
  const HostView& learned = attention.view("SelfAttention.relative_attention_bias.weight",
                                           {config.relative_buckets, config.n_heads});
  if (attention.checks_only()) return nullptr;
  return std::make_unique<RelativeBias>(
      learned, RelativeBuckets{.count = config.relative_buckets,
                               .max_distance = config.relative_max_distance,
                               .bidirectional = bidirectional});
}

SelfAttention::SelfAttention(const T5Config& config, const WeightScope& weights)
    : n_heads_(config.n_heads),
      d_kv_(config.d_kv),
      eps_(config.eps),
      norm_(weights.load_vector("layer_norm.weight", config.d_model)),
      q_(weights.load("SelfAttention.q.weight", {config.inner(), config.d_model})),
      kv_(weights.load_stacked({"SelfAttention.k.weight", "SelfAttention.v.weight"},
                               {config.inner(), config.d_model})),
      o_(weights.load("SelfAttention.o.weight", {config.d_model, config.inner()})) {}

void SelfAttention::forward(ops::Workspace& workspace, const MicroBatch& batch,
                            const Tensor& position_bias, const Tensor& hidden) const {
  // No 1/sqrt(d_kv): T5 was trained with that factor folded into its initial weights.
  ops::self_attention_add(workspace, batch, hidden, {.norm = norm_, .q = *q_, .kv = *kv_, .o = *o_},
                          eps_, position_bias, {.n_heads = n_heads_, .d_kv = d_kv_, .scale = 1.0F});
}

void SelfAttention::forward(ops::Workspace& workspace, const StepBatch& step,
                            const ops::StepTiles& tiles, const Tensor& position_bias,
                            const Tensor& hidden, KvCache* cache) const {
  ops::step_self_attention_add(workspace, step, step.prompts, tiles, hidden,
                               {.norm = norm_, .q = *q_, .kv = *kv_, .o = *o_, .eps = eps_},
                               position_bias, {.n_heads = n_heads_, .d_kv = d_kv_, .scale = 1.0F},
                               cache);
}

CrossAttention::CrossAttention(const T5Config& config, const WeightScope& weights)
    : args_{.n_heads = config.n_heads, .d_kv = config.d_kv, .scale = 1.0F},
      eps_(config.eps),
      norm_(weights.load_vector("layer_norm.weight", config.d_model)),
      q_(weights.load("EncDecAttention.q.weight", {config.inner(), config.d_model})),
      kv_(weights.load_stacked({"EncDecAttention.k.weight", "EncDecAttention.v.weight"},
                               {config.inner(), config.d_model})),
      o_(weights.load("EncDecAttention.o.weight", {config.d_model, config.inner()})) {}

ops::StepAttentionWeights CrossAttention::weights() const {
  return {.norm = norm_, .q = *q_, .kv = *kv_, .o = *o_, .eps = eps_};
}

void CrossAttention::keep(ops::Workspace& workspace, const Tensor& source,
                          std::span<const int32_t> slots, KvCache& cache) const {
  ops::keep_source(workspace, source, slots, weights(), args_, cache);
}

void CrossAttention::forward(ops::Workspace& workspace, const ops::StepTiles& tiles,
                             const Tensor& hidden, const KvCache& cache) const {
  ops::step_cross_attention_add(workspace, tiles, hidden, weights(), args_, cache);
}

FeedForward::FeedForward(const T5Config& config, const WeightScope& weights)
    : eps_(config.eps),
      activation_(config.activation),
      norm_(weights.load_vector("layer_norm.weight", config.d_model)),
      wi_(config.gated
              ? weights.load_stacked({"DenseReluDense.wi_0.weight", "DenseReluDense.wi_1.weight"},
                                     {config.d_ff, config.d_model}, true)
              : weights.load("DenseReluDense.wi.weight", {config.d_ff, config.d_model})),
      wo_(weights.load("DenseReluDense.wo.weight", {config.d_model, config.d_ff})) {}

void FeedForward::forward(ops::Workspace& workspace, const Tensor& hidden) const {
  ops::feed_forward_add(workspace, hidden, {.norm = norm_, .wi = *wi_, .wo = *wo_}, eps_,
                        activation_);
}

EncoderBlock::EncoderBlock(const T5Config& config, const WeightScope& weights)
    : self_attention_(config, weights.scope("layer.0.")),
      feed_forward_(config, weights.scope("layer.1.")),
      own_bias_(config.bias_per_block ? load_relative_bias(config, weights.scope("layer.0."), true)
                                      : nullptr) {}

void EncoderBlock::fit_bias(Device& device, int64_t max_len) {
  if (own_bias_) own_bias_->fit(device, max_len);
}

void EncoderBlock::forward(ops::Workspace& workspace, const MicroBatch& batch,
                           const RelativeBias* shared_bias, const Tensor& hidden) const {
  const RelativeBias& bias = own_bias_ ? *own_bias_ : *shared_bias;
  self_attention_.forward(workspace, batch, bias.table(), hidden);
  feed_forward_.forward(workspace, hidden);
}

DecoderBlock::DecoderBlock(const T5Config& config, const WeightScope& weights)
    : self_attention_(config, weights.scope("layer.0.")),
      cross_attention_(config, weights.scope("layer.1.")),
      feed_forward_(config, weights.scope("layer.2.")),
      own_bias_(config.bias_per_block ? load_relative_bias(config, weights.scope("layer.0."), false)
                                      : nullptr) {}

void DecoderBlock::drop_caches() {
  self_cache_.reset();
  cross_cache_.reset();
}

void DecoderBlock::make_caches(Device& device, const KvShape& shape, const CachePages& pages) {
  if (pages.self > 0) self_cache_ = ops::make_kv_cache(device, shape, pages.self);
  if (pages.cross > 0) cross_cache_ = ops::make_kv_cache(device, shape, pages.cross);
}

void DecoderBlock::forward(ops::Workspace& workspace, const StepBatch& step,
                           const ops::StepTiles& tiles, const Tensor& source,
                           RelativeBias* shared_bias, const Tensor& hidden) {
  if (!cross_cache_ && (!step.source_slots.empty() || step.n_rows() > 0)) {
    fail(ErrorKind::kUsage, "a step came before pages for the encoder's output were reserved");
  }
  if (!step.source_slots.empty()) {
    cross_attention_.keep(workspace, source, step.source_slots, *cross_cache_);
  }
  RelativeBias& bias = own_bias_ ? *own_bias_ : *shared_bias;
  bias.fit(workspace.device(), tiles.max_len);
  self_attention_.forward(workspace, step, tiles, bias.table(), hidden, self_cache_.get());
  if (tiles.tiles.empty()) return;
  cross_attention_.forward(workspace, tiles, hidden, *cross_cache_);
  feed_forward_.forward(workspace, hidden);
}

}  // namespace quintet
