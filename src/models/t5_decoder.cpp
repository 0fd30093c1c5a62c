// T5's decoder: blocks of self-attention, cross-attention and feed-forward.
#include <cmath>
#include <utility>

#include "core/error.h"
#include "models/config_reader.h"
#include "models/relative_bias.h"
#include "models/stack_checks.h"
#include "models/t5.h"
#include "models/t5_block.h"
#include "models/t5_config.h"
#include "models/t5_names.h"
#include "models/vocabulary.h"
#include "models/weight_scope.h"
#include "ops/rows.h"
#include "ops/step_tiles.h"
#include "ops/workspace.h"

namespace quintet {
namespace {

KvShape shape_of_cache(const T5Config& config) {
  return {.n_heads = config.n_heads, .d_kv = config.d_kv};
}

VocabularyNames vocabulary_names(const T5DecoderNames& names, bool with_head) {
  return {.embedding = names.embedding, .head = with_head ? names.head : ""};
}

class T5DecoderStage : public DecoderStage {
 public:
  T5DecoderStage(const T5Config& config, const Checkpoint& checkpoint, Device& device,
                 StageRange range, DType dtype, bool with_head);

  void reserve(const CachePages& pages) override;
  Tensor forward(const StepBatch& step, const Tensor& source, Tensor hidden) override;
  Tensor logits(const Tensor& hidden, const std::vector<int32_t>& selected) override {
    return vocabulary_.logits(device_, hidden, selected, logit_scale_);
  }

 private:
  float eps_;
  float logit_scale_;
  KvShape cache_shape_;
  Device& device_;
  ops::Workspace workspace_;
  Vocabulary vocabulary_;
  std::unique_ptr<RelativeBias> shared_bias_;  // block 0's; null where each block has its own
  std::vector<DecoderBlock> blocks_;
  Tensor final_norm_;  // [1, d_model], last stage
};

T5DecoderStage::T5DecoderStage(const T5Config& config, const Checkpoint& checkpoint, Device& device,
                               StageRange range, DType dtype, bool with_head)
    : eps_(config.eps),
      logit_scale_(config.scale_logits
                       ? static_cast<float>(1 / std::sqrt(static_cast<double>(config.d_model)))
                       : 1),
      cache_shape_(shape_of_cache(config)),
      device_(device),
      workspace_(device),
      vocabulary_(
          WeightScope(checkpoint, "", device, dtype), checkpoint,
          vocabulary_names(find_t5_decoder(checkpoint), with_head),
          {config.vocab_size, config.d_model},
          {.first = range.first_block == 0, .last = range.last_block == config.n_decoder_layers}) {
  const WeightScope stack(checkpoint, find_t5_decoder(checkpoint).stack, device, dtype);
  if (!config.bias_per_block) {
    shared_bias_ = load_relative_bias(config, stack.scope(t5_block_name(0) + "layer.0."), false);
  }
  for (int64_t block = range.first_block; block < range.last_block; ++block) {
    blocks_.emplace_back(config, stack.scope(t5_block_name(block)));
  }
  if (range.last_block == config.n_decoder_layers) {
    final_norm_ = stack.load_vector("final_layer_norm.weight", config.d_model);
  }
}

void T5DecoderStage::reserve(const CachePages& pages) {
  for (DecoderBlock& block : blocks_) block.drop_caches();
  device_.empty_cache();
  for (DecoderBlock& block : blocks_) block.make_caches(device_, cache_shape_, pages);
}

Tensor T5DecoderStage::forward(const StepBatch& step, const Tensor& source, Tensor hidden) {
  if (!hidden && vocabulary_.looks_up()) hidden = vocabulary_.look_up(device_, step);
  if (!hidden && step.n_rows() > 0) {
    fail(ErrorKind::kUsage, "a stage behind the first needs its hidden states");
  }
  const ops::StepTiles tiles = ops::cut_step(step, step.prompts, true);
  for (DecoderBlock& block : blocks_) {
    block.forward(workspace_, step, tiles, source, shared_bias_.get(), hidden);
  }
  if (final_norm_ && step.n_rows() > 0) {
    ops::rms_norm(device_, hidden, final_norm_, eps_, hidden);
  }
  return hidden;
}

class T5Decoder : public DecoderModel {
 public:
  explicit T5Decoder(T5Config config) : config_(std::move(config)) {}

  std::string model_type() const override { return config_.model_type; }
  bool reads_encoder() const override { return true; }
  int64_t n_layers() const override { return config_.n_decoder_layers; }
  int64_t d_model() const override { return config_.d_model; }
  int64_t vocab_size() const override { return config_.vocab_size; }
  int64_t max_positions() const override { return 0; }
  KvShape kv_shape() const override { return shape_of_cache(config_); }
  TokenIds token_ids() const override { return config_.token_ids; }
  std::vector<std::pair<std::string, std::string>> describe() const override {
    return config_.describe_decoder();
  }

  StackCost cost(const Checkpoint& checkpoint, DType dtype, bool with_head) const override;
  DType stored_dtype(const Checkpoint& checkpoint) const override;
  std::vector<std::string> check(const Checkpoint& checkpoint, bool with_head) const override;
  std::unique_ptr<DecoderStage> load_stage(const Checkpoint& checkpoint, Device& device,
                                           StageRange blocks, DType dtype,
                                           bool with_head) const override;

 private:
  BlockCost block_cost(DType dtype) const;

  T5Config config_;
};

BlockCost T5Decoder::block_cost(DType dtype) const {
  const T5Config& c = config_;
  const auto size = static_cast<int64_t>(size_of(dtype));
  constexpr auto kFloat = static_cast<int64_t>(sizeof(float));
  const int64_t source_params = 2 * c.d_model * c.inner();
  const int64_t params = 8 * c.d_model * c.inner() + (c.gated ? 3 : 2) * c.d_model * c.d_ff;

  BlockCost block;
  block.weight_params = params;
  block.weight_bytes = params * size + 3 * c.d_model * kFloat;
  block.flops_per_token = 2 * static_cast<double>(params - source_params);
  block.attention_flops_per_token_key = 4 * static_cast<double>(c.inner());
  block.cache_bytes_per_page = kv_shape().bytes_per_page();
  block.flops_per_source_token = 2 * static_cast<double>(source_params);
  block.source_weight_bytes = source_params * size;
  if (c.bias_per_block) {
    block.weight_bytes += c.relative_buckets * c.n_heads * kFloat;
    block.activation_bytes_per_max_len =
        static_cast<double>(RelativeBias::bytes_per_len(c.n_heads));
  }
  return block;
}

StackCost T5Decoder::cost(const Checkpoint& checkpoint, DType dtype, bool with_head) const {
  const T5Config& c = config_;
  constexpr auto kFloat = static_cast<int64_t>(sizeof(float));
  const ops::ActivationBytes bytes = ops::activation_bytes(c.d_model, c.inner(), c.d_ff);
  StackCost cost;
  cost.blocks.assign(static_cast<size_t>(c.n_decoder_layers), block_cost(dtype));
  cost.last_bytes = c.d_model * kFloat;
  cost.d_model = c.d_model;
  cost.activation_bytes_per_token = static_cast<double>(bytes.per_token);
  cost.activation_bytes_per_tile_row = static_cast<double>(bytes.per_tile_row);
  cost.tile_rows = ops::kTileRows;
  if (!c.bias_per_block) {
    cost.per_stage_bytes = c.relative_buckets * c.n_heads * kFloat;
    cost.activation_bytes_per_max_len = static_cast<double>(RelativeBias::bytes_per_len(c.n_heads));
  }
  add_vocabulary_cost(checkpoint, vocabulary_names(find_t5_decoder(checkpoint), with_head),
                      {c.vocab_size, c.d_model}, dtype, cost);
  return cost;
}

DType T5Decoder::stored_dtype(const Checkpoint& checkpoint) const {
  const T5DecoderNames names = find_t5_decoder(checkpoint);
  return dtype_of_matrices(
      checkpoint, [&](const std::string& name) { return is_t5_block_matrix(names.stack, name); });
}

std::vector<std::string> T5Decoder::check(const Checkpoint& checkpoint, bool with_head) const {
  const T5DecoderNames names = find_t5_decoder(checkpoint);
  WeightScope::Names used;
  const WeightScope all(checkpoint, "", used);
  const WeightScope stack = all.scope(names.stack);
  const Vocabulary vocabulary(all, checkpoint, vocabulary_names(names, with_head),
                              {config_.vocab_size, config_.d_model}, {.first = true, .last = true});
  load_relative_bias(config_, stack.scope(t5_block_name(0) + "layer.0."), false);
  for (int64_t block = 0; block < config_.n_decoder_layers; ++block) {
    const DecoderBlock checked(config_, stack.scope(t5_block_name(block)));
  }
  stack.load_vector("final_layer_norm.weight", config_.d_model);
  return note_unused(
      checkpoint, used, [&](const std::string& name) { return is_expected_unused(names, name); },
      "decoder");
}

std::unique_ptr<DecoderStage> T5Decoder::load_stage(const Checkpoint& checkpoint, Device& device,
                                                    StageRange blocks, DType dtype,
                                                    bool with_head) const {
  check_stage_range(blocks, config_.n_decoder_layers, "decoder");
  return std::make_unique<T5DecoderStage>(config_, checkpoint, device, blocks, dtype, with_head);
}

}  // namespace

std::unique_ptr<DecoderModel> make_t5_decoder(const nlohmann::json& config,
                                              const std::string& where) {
  const ConfigReader reader(config, where);
  T5Config parsed = parse_t5_config(config, where);
  if (!parsed.has_decoder) {
    reader.reject("architectures",
                  "a model with a decoder; from an encoder alone, take embeddings");
  }
  // Half of the buckets are for single steps back; the logarithmic ones must lie beyond.
  if (parsed.relative_max_distance <= parsed.relative_buckets / 2) {
    reader.reject("relative_attention_max_distance",
                  fmt::format("more than {}, half of relative_attention_num_buckets, in a decoder",
                              parsed.relative_buckets / 2));
  }
  return std::make_unique<T5Decoder>(std::move(parsed));
}

}  // namespace quintet
