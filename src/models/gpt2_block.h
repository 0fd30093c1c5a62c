// The layers of GPT-2. Constructors bind weights under the checkpoint's own names; its matrices lie
// in the file as [d_in, d_out].
#ifndef QUINTET_MODELS_GPT2_BLOCK_H_
#define QUINTET_MODELS_GPT2_BLOCK_H_

#include <cstdint>
#include <memory>
#include <string>

#include "core/micro_batch.h"
#include "core/step_batch.h"
#include "core/tensor.h"
#include "models/gpt2_config.h"
#include "models/weight_scope.h"
#include "ops/step_tiles.h"
#include "ops/workspace.h"

namespace quintet {

// A layer norm's weight and bias, [1, n] each.
struct Gpt2Norm {
  Gpt2Norm(const WeightScope& weights, const std::string& name, int64_t n);

  Tensor weight;
  Tensor bias;
};

class Gpt2Block {
 public:
  // weights: scope of one block, "transformer.h.3."
  Gpt2Block(const Gpt2Config& config, const WeightScope& weights, int64_t block);

  // Drops the cache and, with pages, makes another.
  void reserve(Device& device, const KvShape& shape, int64_t n_pages);

  // hidden: [n_rows, d_model], updated in place; `prompts` as in ops::step_self_attention_add.
  void forward(ops::Workspace& workspace, const StepBatch& step, const MicroBatch& prompts,
               const ops::StepTiles& tiles, const Tensor& hidden);

 private:
  float eps_;
  Activation activation_;
  AttentionArgs args_;
  Gpt2Norm attention_norm_;
  std::unique_ptr<Weight> q_;
  std::unique_ptr<Weight> kv_;
  Tensor qkv_bias_;  // [1, 3 * d_model]
  std::unique_ptr<Weight> o_;
  Tensor o_bias_;
  Gpt2Norm feed_forward_norm_;
  std::unique_ptr<Weight> wi_;
  Tensor wi_bias_;
  std::unique_ptr<Weight> wo_;
  Tensor wo_bias_;
  std::unique_ptr<KvCache> cache_;
};

}  // namespace quintet

#endif  // QUINTET_MODELS_GPT2_BLOCK_H_
