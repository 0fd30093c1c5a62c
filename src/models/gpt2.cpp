#include "models/gpt2.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "models/gpt2_block.h"
#include "models/gpt2_config.h"
#include "models/stack_checks.h"
#include "models/vocabulary.h"
#include "models/weight_scope.h"
#include "ops/norm.h"
#include "ops/rows.h"
#include "ops/step_tiles.h"
#include "ops/workspace.h"

namespace quintet {
namespace {

struct Gpt2Names {
  std::string root;   // what stands before everything
  std::string stack;  // root, or root + "transformer." as saved with a head
  VocabularyNames vocabulary;
};

Gpt2Names find_gpt2(const Checkpoint& checkpoint, const Gpt2Config& config, bool with_head) {
  constexpr std::string_view kProbe = "h.0.ln_1.weight";
  constexpr std::string_view kTransformer = "transformer.";
  std::set<std::string> prefixes;
  const auto consider = [&](std::string_view name) {
    if (!name.ends_with(kProbe)) return;
    name.remove_suffix(kProbe.size());
    if (name.empty() || name.back() == '.') prefixes.emplace(name);
  };
  for (const auto& [name, view] : checkpoint.tensors()) consider(name);
  for (const auto& [name, shard] : checkpoint.missing()) consider(name);
  if (prefixes.size() > 1) {
    fail(ErrorKind::kFile, "{}: several models, under '{}', expected one",
         checkpoint.folder().string(), fmt::join(prefixes, "', '"));
  }
  Gpt2Names names;
  if (!prefixes.empty()) names.stack = *prefixes.begin();
  names.root = names.stack;
  if (names.root.ends_with(kTransformer)) {
    names.root.resize(names.root.size() - kTransformer.size());
  }
  names.vocabulary.embedding = names.stack + "wte.weight";
  if (!with_head) return names;
  // A head of its own counts whatever the config says of tying.
  const std::string head = names.root + "lm_head.weight";
  const bool own = !config.ties || checkpoint.tensors().contains(head);
  names.vocabulary.head = own ? head : names.vocabulary.embedding;
  return names;
}

std::string block_name(int64_t block) { return fmt::format("h.{}.", block); }

// The buffers of the original's causal mask, which old checkpoints hold.
bool is_mask(const std::string& name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias");
}

// The same rows at positions 0, 1, ... of their sequences: attention knows only their order, while
// the learned positions may be any.
MicroBatch in_order(const MicroBatch& prompts) {
  MicroBatch batch;
  batch.tokens = prompts.tokens;
  batch.cu_seqlens = prompts.cu_seqlens;
  batch.ordinals = prompts.ordinals;
  for (size_t s = 0; s + 1 < prompts.cu_seqlens.size(); ++s) {
    const int32_t length = prompts.cu_seqlens[s + 1] - prompts.cu_seqlens[s];
    for (int32_t i = 0; i < length; ++i) batch.positions.push_back(i);
    batch.max_len = std::max(batch.max_len, length);
  }
  return batch;
}

void check_positions(const std::vector<int32_t>& positions, int64_t n_positions) {
  for (size_t row = 0; row < positions.size(); ++row) {
    if (positions[row] >= 0 && positions[row] < n_positions) continue;
    fail(
        ErrorKind::kRecord,
        "position {} is beyond what the model has, 0 .. {} (n_positions {}); shorten the prompt or "
        "ask for fewer new tokens",
        positions[row], n_positions - 1, n_positions);
  }
}

class Gpt2Stage : public DecoderStage {
 public:
  Gpt2Stage(const Gpt2Config& config, const Checkpoint& checkpoint, Device& device,
            StageRange range, DType dtype, bool with_head);

  void reserve(const CachePages& pages) override;
  Tensor forward(const StepBatch& step, const Tensor& source, Tensor hidden) override;
  Tensor logits(const Tensor& hidden, const std::vector<int32_t>& selected) override {
    return vocabulary_.logits(device_, hidden, selected, 1);
  }

 private:
  float eps_;
  KvShape cache_shape_;
  Device& device_;
  ops::Workspace workspace_;
  Vocabulary vocabulary_;
  Tensor positions_;  // [n_positions, d_model], first stage
  std::vector<Gpt2Block> blocks_;
  std::optional<Gpt2Norm> final_norm_;  // last stage
};

Gpt2Stage::Gpt2Stage(const Gpt2Config& config, const Checkpoint& checkpoint, Device& device,
                     StageRange range, DType dtype, bool with_head)
    : eps_(config.eps),
      cache_shape_{.n_heads = config.n_heads, .d_kv = config.d_kv()},
      device_(device),
      workspace_(device),
      vocabulary_(WeightScope(checkpoint, "", device, dtype), checkpoint,
                  find_gpt2(checkpoint, config, with_head).vocabulary,
                  {config.vocab_size, config.d_model},
                  {.first = range.first_block == 0, .last = range.last_block == config.n_layers}) {
  const WeightScope stack(checkpoint, find_gpt2(checkpoint, config, with_head).stack, device,
                          dtype);
  if (range.first_block == 0) {
    positions_ = stack.load_table("wpe.weight", {config.n_positions, config.d_model});
  }
  for (int64_t block = range.first_block; block < range.last_block; ++block) {
    blocks_.emplace_back(config, stack.scope(block_name(block)), block);
  }
  if (range.last_block == config.n_layers) final_norm_.emplace(stack, "ln_f", config.d_model);
}

void Gpt2Stage::reserve(const CachePages& pages) {
  for (Gpt2Block& block : blocks_) block.reserve(device_, cache_shape_, 0);
  device_.empty_cache();
  for (Gpt2Block& block : blocks_) block.reserve(device_, cache_shape_, pages.self);
}

Tensor Gpt2Stage::forward(const StepBatch& step, const Tensor& /*source*/, Tensor hidden) {
  if (!hidden && positions_) {
    const std::vector<int32_t> positions = row_positions(step);
    check_positions(positions, positions_.rows());
    hidden = vocabulary_.look_up(device_, step);
    ops::embedding_add(device_, positions, positions_, hidden);
  }
  if (!hidden && step.n_rows() > 0) {
    fail(ErrorKind::kUsage, "a stage behind the first needs its hidden states");
  }
  const MicroBatch prompts = in_order(step.prompts);
  const ops::StepTiles tiles = ops::cut_step(step, prompts, false);
  for (Gpt2Block& block : blocks_) block.forward(workspace_, step, prompts, tiles, hidden);
  if (final_norm_ && step.n_rows() > 0) {
    ops::norm(device_, hidden, final_norm_->weight, final_norm_->bias, eps_, hidden);
  }
  return hidden;
}

class Gpt2Decoder : public DecoderModel {
 public:
  explicit Gpt2Decoder(Gpt2Config config) : config_(std::move(config)) {}

  std::string model_type() const override { return "gpt2"; }
  bool reads_encoder() const override { return false; }
  int64_t n_layers() const override { return config_.n_layers; }
  int64_t d_model() const override { return config_.d_model; }
  int64_t vocab_size() const override { return config_.vocab_size; }
  int64_t max_positions() const override { return config_.n_positions; }
  KvShape kv_shape() const override { return {.n_heads = config_.n_heads, .d_kv = config_.d_kv()}; }
  TokenIds token_ids() const override { return config_.token_ids; }
  std::vector<std::pair<std::string, std::string>> describe() const override {
    return config_.describe();
  }

  StackCost cost(const Checkpoint& checkpoint, DType dtype, bool with_head) const override;
  DType stored_dtype(const Checkpoint& checkpoint) const override;
  std::vector<std::string> check(const Checkpoint& checkpoint, bool with_head) const override;
  std::unique_ptr<DecoderStage> load_stage(const Checkpoint& checkpoint, Device& device,
                                           StageRange blocks, DType dtype,
                                           bool with_head) const override;

 private:
  Gpt2Config config_;
};

StackCost Gpt2Decoder::cost(const Checkpoint& checkpoint, DType dtype, bool with_head) const {
  const Gpt2Config& c = config_;
  const auto size = static_cast<int64_t>(size_of(dtype));
  constexpr auto kFloat = static_cast<int64_t>(sizeof(float));
  const int64_t params = 4 * c.d_model * c.d_model + 2 * c.d_model * c.d_ff;
  const int64_t vectors = 4 * c.d_model + 5 * c.d_model + c.d_ff;  // norms; biases

  BlockCost block;
  block.weight_params = params;
  block.weight_bytes = params * size + vectors * kFloat;
  block.flops_per_token = 2 * static_cast<double>(params);
  block.attention_flops_per_token_key = 4 * static_cast<double>(c.d_model);
  block.cache_bytes_per_page = kv_shape().bytes_per_page();

  const ops::ActivationBytes bytes = ops::activation_bytes(c.d_model, c.d_model, c.d_ff);
  StackCost cost;
  cost.blocks.assign(static_cast<size_t>(c.n_layers), block);
  cost.first_bytes = c.n_positions * c.d_model * size;
  cost.last_bytes = 2 * c.d_model * kFloat;
  cost.d_model = c.d_model;
  cost.activation_bytes_per_token = static_cast<double>(bytes.per_token);
  cost.activation_bytes_per_tile_row = static_cast<double>(bytes.per_tile_row);
  cost.tile_rows = ops::kTileRows;
  add_vocabulary_cost(checkpoint, find_gpt2(checkpoint, c, with_head).vocabulary,
                      {c.vocab_size, c.d_model}, dtype, cost);
  return cost;
}

DType Gpt2Decoder::stored_dtype(const Checkpoint& checkpoint) const {
  const std::string blocks = find_gpt2(checkpoint, config_, false).stack + "h.";
  return dtype_of_matrices(checkpoint,
                           [&](const std::string& name) { return name.starts_with(blocks); });
}

std::vector<std::string> Gpt2Decoder::check(const Checkpoint& checkpoint, bool with_head) const {
  const Gpt2Names names = find_gpt2(checkpoint, config_, with_head);
  WeightScope::Names used;
  const WeightScope all(checkpoint, "", used);
  const WeightScope stack = all.scope(names.stack);
  const Vocabulary vocabulary(all, checkpoint, names.vocabulary,
                              {config_.vocab_size, config_.d_model}, {.first = true, .last = true});
  stack.load_table("wpe.weight", {config_.n_positions, config_.d_model});
  for (int64_t block = 0; block < config_.n_layers; ++block) {
    const Gpt2Block checked(config_, stack.scope(block_name(block)), block);
  }
  const Gpt2Norm final_norm(stack, "ln_f", config_.d_model);
  return note_unused(
      checkpoint, used,
      [&](const std::string& name) {
        return is_mask(name) || name == names.root + "lm_head.weight";
      },
      "decoder");
}

std::unique_ptr<DecoderStage> Gpt2Decoder::load_stage(const Checkpoint& checkpoint, Device& device,
                                                      StageRange blocks, DType dtype,
                                                      bool with_head) const {
  check_stage_range(blocks, config_.n_layers, "decoder");
  return std::make_unique<Gpt2Stage>(config_, checkpoint, device, blocks, dtype, with_head);
}

}  // namespace

std::unique_ptr<DecoderModel> make_gpt2_decoder(const nlohmann::json& config,
                                                const std::string& where) {
  return std::make_unique<Gpt2Decoder>(parse_gpt2_config(config, where));
}

}  // namespace quintet
