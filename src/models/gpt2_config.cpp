#include "models/gpt2_config.h"

#include <cmath>

#include "core/error.h"
#include "models/activations.h"
#include "models/config_reader.h"

namespace quintet {
namespace {

void parse_sizes(const ConfigReader& reader, Gpt2Config& config) {
  const auto size = [&](const char* key, const char* also, int64_t most, int64_t otherwise) {
    auto value = reader.integer(key, {1, most});
    if (!value) value = reader.integer(also, {1, most});
    return value.value_or(otherwise);
  };
  config.vocab_size = reader.integer("vocab_size", {1, 1 << 28}).value_or(50257);
  config.n_positions = size("n_positions", "max_position_embeddings", 1 << 24, 1024);
  config.d_model = size("n_embd", "hidden_size", 1 << 18, 768);
  config.n_layers = size("n_layer", "num_hidden_layers", 1 << 12, 12);
  config.n_heads = size("n_head", "num_attention_heads", 1 << 12, 12);
  config.d_ff = reader.integer("n_inner", {1, 1 << 20}).value_or(4 * config.d_model);
  if (config.d_model % config.n_heads != 0) {
    reader.reject("n_head", fmt::format("a divisor of n_embd, which is {}", config.d_model));
  }
}

}  // namespace

Gpt2Config parse_gpt2_config(const nlohmann::json& config, const std::string& where) {
  const ConfigReader reader(config, where);
  if (reader.string("model_type").value_or("") != "gpt2") reader.reject("model_type", "gpt2");
  if (reader.boolean("add_cross_attention").value_or(false)) {
    reader.reject("add_cross_attention", "false: GPT-2 beside an encoder is not supported");
  }
  Gpt2Config c;
  parse_sizes(reader, c);
  c.eps = static_cast<float>(reader.number("layer_norm_epsilon", 1e-30, 1).value_or(1e-5));
  c.activation_name = reader.string("activation_function").value_or("gelu_new");
  const auto activation = activation_named(c.activation_name);
  if (!activation) reader.reject("activation_function", "one of " + known_activations());
  c.activation = *activation;
  c.scale_scores = reader.boolean("scale_attn_weights").value_or(true);
  c.scale_by_layer = reader.boolean("scale_attn_by_inverse_layer_idx").value_or(false);
  // Asks for float32 scores, which are float32 here in any case.
  reader.boolean("reorder_and_upcast_attn");
  c.ties = reader.boolean("tie_word_embeddings").value_or(true);
  c.token_ids =
      parse_token_ids(reader, {.bos = 50256, .eos = {50256}, .pad = {}, .decoder_start = {}});
  return c;
}

float Gpt2Config::score_scale(int64_t block) const {
  double scale = scale_scores ? 1 / std::sqrt(static_cast<double>(d_kv())) : 1;
  if (scale_by_layer) scale /= static_cast<double>(block + 1);
  return static_cast<float>(scale);
}

std::vector<std::pair<std::string, std::string>> Gpt2Config::describe() const {
  return {
      {"model_type", "gpt2"},
      {"n_layers", fmt::format("{}", n_layers)},
      {"d_model", fmt::format("{}", d_model)},
      {"n_heads", fmt::format("{} of d_kv {}", n_heads, d_kv())},
      {"d_ff", fmt::format("{}", d_ff)},
      {"activation", activation_name},
      {"vocab_size", fmt::format("{}", vocab_size)},
      {"n_positions", fmt::format("{}", n_positions)},
      {"attention_scores", fmt::format("{}{}", scale_scores ? "scaled by d_kv^-0.5" : "not scaled",
                                       scale_by_layer ? ", divided by the block's number" : "")},
      {"layer_norm_epsilon", fmt::format("{}", eps)},
      {"bos_token_id", shown(token_ids.bos)},
      {"eos_token_id", shown(token_ids.eos)},
      {"pad_token_id", shown(token_ids.pad)},
  };
}

}  // namespace quintet
