// The layers of T5's stacks. Constructors bind weights under the checkpoint's own names.
#ifndef QUINTET_MODELS_T5_BLOCK_H_
#define QUINTET_MODELS_T5_BLOCK_H_

#include <memory>
#include <span>

#include "core/micro_batch.h"
#include "core/step_batch.h"
#include "core/tensor.h"
#include "models/decoder.h"
#include "models/relative_bias.h"
#include "models/t5_config.h"
#include "models/weight_scope.h"
#include "ops/step_attention.h"
#include "ops/step_tiles.h"
#include "ops/workspace.h"

namespace quintet {

// The learned table of the attention under `attention`, e.g. "encoder.block.0.layer.0." ; nothing
// where the scope only checks.
std::unique_ptr<RelativeBias> load_relative_bias(const T5Config& config,
                                                 const WeightScope& attention, bool bidirectional);

class SelfAttention {
 public:
  SelfAttention(const T5Config& config, const WeightScope& weights);

  // hidden += attention(norm(hidden)), [n_tokens, d_model]; position_bias: [n_heads, 2 * m - 1]
  void forward(ops::Workspace& workspace, const MicroBatch& batch, const Tensor& position_bias,
               const Tensor& hidden) const;
  // The same of a decoder's step, [n_rows, d_model]; cache: null where it has no pages.
  void forward(ops::Workspace& workspace, const StepBatch& step, const ops::StepTiles& tiles,
               const Tensor& position_bias, const Tensor& hidden, KvCache* cache) const;

 private:
  int64_t n_heads_;
  int64_t d_kv_;
  float eps_;
  Tensor norm_;
  std::unique_ptr<Weight> q_;
  std::unique_ptr<Weight> kv_;
  std::unique_ptr<Weight> o_;
};

// A decoder's attention to the encoder's output. It has no position bias.
class CrossAttention {
 public:
  CrossAttention(const T5Config& config, const WeightScope& weights);

  // Keeps keys and values of the encoder's rows that come with the step, source: [n, d_model].
  void keep(ops::Workspace& workspace, const Tensor& source, std::span<const int32_t> slots,
            KvCache& cache) const;
  // hidden += attention(norm(hidden)), [n_rows, d_model]
  void forward(ops::Workspace& workspace, const ops::StepTiles& tiles, const Tensor& hidden,
               const KvCache& cache) const;

 private:
  ops::StepAttentionWeights weights() const;

  AttentionArgs args_;
  float eps_;
  Tensor norm_;
  std::unique_ptr<Weight> q_;
  std::unique_ptr<Weight> kv_;
  std::unique_ptr<Weight> o_;
};

class FeedForward {
 public:
  FeedForward(const T5Config& config, const WeightScope& weights);

  // hidden += feed_forward(norm(hidden)), [n_tokens, d_model]
  void forward(ops::Workspace& workspace, const Tensor& hidden) const;

 private:
  float eps_;
  Activation activation_;
  Tensor norm_;
  std::unique_ptr<Weight> wi_;
  std::unique_ptr<Weight> wo_;
};

class EncoderBlock {
 public:
  // weights: scope of one block, "encoder.block.3."
  EncoderBlock(const T5Config& config, const WeightScope& weights);

  // Before forward() on sequences of up to max_len; not while one is under way.
  void fit_bias(Device& device, int64_t max_len);
  // shared_bias: block 0's, which every block of T5 uses; null for uMT5, whose blocks have their
  // own. hidden: [n_tokens, d_model], updated in place.
  void forward(ops::Workspace& workspace, const MicroBatch& batch, const RelativeBias* shared_bias,
               const Tensor& hidden) const;

 private:
  SelfAttention self_attention_;
  FeedForward feed_forward_;
  std::unique_ptr<RelativeBias> own_bias_;
};

class DecoderBlock {
 public:
  // weights: scope of one block, "decoder.block.3."
  DecoderBlock(const T5Config& config, const WeightScope& weights);

  void drop_caches();
  void make_caches(Device& device, const KvShape& shape, const CachePages& pages);

  // shared_bias: as an encoder block's. source: the encoder's rows that come with the step. hidden:
  // [n_rows, d_model], updated in place; may be no tensor where the step has no rows.
  void forward(ops::Workspace& workspace, const StepBatch& step, const ops::StepTiles& tiles,
               const Tensor& source, RelativeBias* shared_bias, const Tensor& hidden);

 private:
  SelfAttention self_attention_;
  CrossAttention cross_attention_;
  FeedForward feed_forward_;
  std::unique_ptr<RelativeBias> own_bias_;
  std::unique_ptr<KvCache> self_cache_;
  std::unique_ptr<KvCache> cross_cache_;
};

}  // namespace quintet

#endif  // QUINTET_MODELS_T5_BLOCK_H_
