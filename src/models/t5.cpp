#include "models/t5.h"

#include <utility>

#include "core/error.h"
#include "models/batch_parts.h"
#include "models/relative_bias.h"
#include "models/stack_checks.h"
#include "models/t5_block.h"
#include "models/t5_config.h"
#include "models/t5_names.h"
#include "models/weight_scope.h"
#include "ops/rows.h"
#include "ops/workspace.h"

namespace quintet {
namespace {

class T5EncoderStage : public EncoderStage {
 public:
  T5EncoderStage(const T5Config& config, const Checkpoint& checkpoint, Device& device,
                 StageRange range, DType dtype)
      : eps_(config.eps), device_(device), workspace_(device) {
    const T5EncoderNames names = find_t5_encoder(checkpoint);
    const WeightScope stack(checkpoint, names.stack, device, dtype);
    if (range.first_block == 0) {
      table_ = WeightScope(checkpoint, "", device, dtype)
                   .load_table(names.embedding, {config.vocab_size, config.d_model});
    }
    if (!config.bias_per_block) {
      shared_bias_ = load_relative_bias(config, stack.scope(t5_block_name(0) + "layer.0."), true);
    }
    for (int64_t block = range.first_block; block < range.last_block; ++block) {
      blocks_.emplace_back(config, stack.scope(t5_block_name(block)));
    }
    if (range.last_block == config.n_layers) {
      final_norm_ = stack.load_vector("final_layer_norm.weight", config.d_model);
    }
  }

  Tensor forward(const MicroBatch& batch, Tensor hidden) override {
    if (!hidden && table_) hidden = ops::embedding(device_, batch.tokens, table_);
    if (!hidden) fail(ErrorKind::kUsage, "a stage behind the first needs its hidden states");
    if (hidden.empty()) return hidden;
    if (shared_bias_) shared_bias_->fit(device_, batch.max_len);
    for (EncoderBlock& block : blocks_) block.fit_bias(device_, batch.max_len);
    const std::vector<BatchPart> parts = cut_batch(batch, device_.parts_wanted());
    if (parts.empty()) {
      forward(workspace_, batch, hidden);
      return hidden;
    }
    device_.run_parts(static_cast<int64_t>(parts.size()), [&](int64_t i) {
      const auto& [part, row] = parts[static_cast<size_t>(i)];
      const int64_t n = part.n_tokens();
      ops::Workspace share = workspace_.share(row, n, batch.n_tokens());
      forward(share, part, hidden.rows(row, n));
    });
    return hidden;
  }

 private:
  void forward(ops::Workspace& workspace, const MicroBatch& batch, const Tensor& hidden) const {
    for (const EncoderBlock& block : blocks_) {
      block.forward(workspace, batch, shared_bias_.get(), hidden);
    }
    if (final_norm_) ops::rms_norm(device_, hidden, final_norm_, eps_, hidden);
  }

  float eps_;
  Device& device_;
  ops::Workspace workspace_;
  Tensor table_;                               // [vocab_size, d_model], first stage
  std::unique_ptr<RelativeBias> shared_bias_;  // block 0's; null where each block has its own
  std::vector<EncoderBlock> blocks_;
  Tensor final_norm_;  // [1, d_model], last stage
};

class T5Encoder : public EncoderModel {
 public:
  explicit T5Encoder(T5Config config) : config_(std::move(config)) {}

  std::string model_type() const override { return config_.model_type; }
  int64_t n_layers() const override { return config_.n_layers; }
  int64_t d_model() const override { return config_.d_model; }
  int64_t vocab_size() const override { return config_.vocab_size; }
  int64_t pad_token_id() const override { return config_.pad_token_id; }
  std::vector<std::pair<std::string, std::string>> describe() const override {
    return config_.describe();
  }

  StackCost cost(DType dtype) const override;
  DType stored_dtype(const Checkpoint& checkpoint) const override;
  std::vector<std::string> check(const Checkpoint& checkpoint) const override;
  std::unique_ptr<EncoderStage> load_stage(const Checkpoint& checkpoint, Device& device,
                                           StageRange blocks, DType dtype) const override;

 private:
  T5Config config_;
};

StackCost T5Encoder::cost(DType dtype) const {
  const T5Config& c = config_;
  const auto size = static_cast<int64_t>(size_of(dtype));
  constexpr auto kFloat = static_cast<int64_t>(sizeof(float));
  const int64_t params = 4 * c.d_model * c.inner() + (c.gated ? 3 : 2) * c.d_model * c.d_ff;
  const int64_t bias_bytes = c.relative_buckets * c.n_heads * kFloat;
  const auto bias_per_len = static_cast<double>(RelativeBias::bytes_per_len(c.n_heads));

  BlockCost block;
  block.weight_params = params;
  block.weight_bytes = params * size + 2 * c.d_model * kFloat + (c.bias_per_block ? bias_bytes : 0);
  block.flops_per_token = 2 * static_cast<double>(params);
  block.attention_flops_per_token_key = 4 * static_cast<double>(c.inner());
  block.activation_bytes_per_max_len = c.bias_per_block ? bias_per_len : 0;

  const ops::ActivationBytes bytes = ops::activation_bytes(c.d_model, c.inner(), c.d_ff);
  StackCost cost;
  cost.blocks.assign(static_cast<size_t>(c.n_layers), block);
  cost.first_bytes = c.vocab_size * c.d_model * size;
  cost.last_bytes = c.d_model * kFloat;
  cost.per_stage_bytes = c.bias_per_block ? 0 : bias_bytes;
  cost.d_model = c.d_model;
  cost.activation_bytes_per_token = static_cast<double>(bytes.per_token);
  cost.activation_bytes_per_tile_row = static_cast<double>(bytes.per_tile_row);
  cost.activation_bytes_per_max_len = c.bias_per_block ? 0 : bias_per_len;
  cost.tile_rows = ops::kTileRows;
  return cost;
}

DType T5Encoder::stored_dtype(const Checkpoint& checkpoint) const {
  const T5EncoderNames names = find_t5_encoder(checkpoint);
  return dtype_of_matrices(
      checkpoint, [&](const std::string& name) { return is_t5_block_matrix(names.stack, name); });
}

std::vector<std::string> T5Encoder::check(const Checkpoint& checkpoint) const {
  const T5EncoderNames names = find_t5_encoder(checkpoint);
  WeightScope::Names used;
  const WeightScope all(checkpoint, "", used);
  const WeightScope stack = all.scope(names.stack);
  all.load_table(names.embedding, {config_.vocab_size, config_.d_model});
  load_relative_bias(config_, stack.scope(t5_block_name(0) + "layer.0."), true);
  for (int64_t block = 0; block < config_.n_layers; ++block) {
    const EncoderBlock checked(config_, stack.scope(t5_block_name(block)));
  }
  stack.load_vector("final_layer_norm.weight", config_.d_model);

  return note_unused(
      checkpoint, used, [&](const std::string& name) { return is_expected_unused(names, name); },
      "encoder");
}

std::unique_ptr<EncoderStage> T5Encoder::load_stage(const Checkpoint& checkpoint, Device& device,
                                                    StageRange blocks, DType dtype) const {
  check_stage_range(blocks, config_.n_layers, "encoder");
  return std::make_unique<T5EncoderStage>(config_, checkpoint, device, blocks, dtype);
}

}  // namespace

std::unique_ptr<EncoderModel> make_t5_encoder(const nlohmann::json& config,
                                              const std::string& where) {
  return std::make_unique<T5Encoder>(parse_t5_config(config, where));
}

}  // namespace quintet
