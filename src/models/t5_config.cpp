#include "models/t5_config.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "core/error.h"
#include "models/activations.h"
#include "models/config_reader.h"

namespace quintet {
namespace {

// What a file leaves out has the value that the original's configuration class gives it.
struct Defaults {
  std::string_view model_type;
  int64_t vocab_size;
  int64_t d_ff;
  int64_t n_layers;
  int64_t n_heads;
  std::string_view feed_forward_proj;
  bool bias_per_block;
  bool scales_logits;  // unless tie_word_embeddings is false
  std::optional<int64_t> decoder_start;
};

constexpr std::array<Defaults, 3> kFamily = {{
    {"t5", 32128, 2048, 6, 8, "relu", false, true, std::nullopt},
    {"mt5", 250112, 1024, 8, 6, "gated-gelu", false, false, 0},
    {"umt5", 250112, 1024, 8, 6, "gated-gelu", true, true, 0},
}};

// feed_forward_proj is "ACT" or "gated-ACT"; "gated-gelu" has always meant the tanh form. Explicit
// dense_act_fn and is_gated_act win over it.
void parse_activation(const ConfigReader& reader, std::string_view default_proj, T5Config& config) {
  const std::string proj = reader.string("feed_forward_proj").value_or(std::string(default_proj));
  const auto explicit_name = reader.string("dense_act_fn");
  const auto explicit_gated = reader.boolean("is_gated_act");

  constexpr std::string_view kGated = "gated-";
  config.gated = explicit_gated.value_or(proj.starts_with(kGated));
  if (explicit_name) {
    config.activation_name = *explicit_name;
  } else if (proj == "gated-gelu") {
    config.activation_name = "gelu_new";
  } else {
    config.activation_name = proj.starts_with(kGated) ? proj.substr(kGated.size()) : proj;
  }
  const auto activation = activation_named(config.activation_name);
  if (!activation) {
    if (explicit_name) reader.reject("dense_act_fn", "one of " + known_activations());
    reader.reject("feed_forward_proj",
                  "one of these, or gated- and one of these: " + known_activations());
  }
  config.activation = *activation;
}

void parse_relative_attention(const ConfigReader& reader, T5Config& config) {
  constexpr int64_t kMost = 1 << 16;
  config.relative_buckets =
      reader.integer("relative_attention_num_buckets", {4, kMost}).value_or(32);
  // The encoder has half of the buckets for each direction, and half of those for single steps;
  // the other half is logarithmic up to max_distance, which must lie beyond them.
  const int64_t exact = config.relative_buckets / 4;
  config.relative_max_distance =
      reader.integer("relative_attention_max_distance", {1, int64_t{1} << 24}).value_or(128);
  if (config.relative_max_distance <= exact) {
    reader.reject("relative_attention_max_distance",
                  fmt::format("more than {}, a quarter of relative_attention_num_buckets", exact));
  }
}

// The classes that save an encoder alone keep the decoder's settings in their config.
bool is_encoder_alone(const ConfigReader& reader) {
  const std::vector<std::string> classes = reader.strings("architectures");
  return !classes.empty() && std::all_of(classes.begin(), classes.end(), [](const auto& name) {
    return name.ends_with("EncoderModel") || name.ends_with("ForTokenClassification");
  });
}

void parse_decoder(const ConfigReader& reader, const Defaults& defaults, T5Config& config) {
  config.n_decoder_layers =
      reader.integer("num_decoder_layers", {0, 1 << 12}).value_or(config.n_layers);
  config.has_decoder = config.n_decoder_layers > 0 && !is_encoder_alone(reader);
  // Newer versions write tie_word_embeddings true for every model, and what the value meant for the
  // logits as scale_decoder_outputs.
  const bool ties = reader.boolean("tie_word_embeddings").value_or(true);
  config.scale_logits =
      reader.boolean("scale_decoder_outputs").value_or(defaults.scales_logits && ties);
  config.token_ids = parse_token_ids(
      reader, {.bos = {}, .eos = {1}, .pad = 0, .decoder_start = defaults.decoder_start});
}

}  // namespace

T5Config parse_t5_config(const nlohmann::json& config, const std::string& where) {
  const ConfigReader reader(config, where);
  const std::string type = reader.string("model_type").value_or("");
  const Defaults* defaults = nullptr;
  for (const auto& known : kFamily) {
    if (known.model_type == type) defaults = &known;
  }
  if (defaults == nullptr) reader.reject("model_type", "t5, mt5 or umt5");

  const auto size = [&](const char* key, const char* also, int64_t most, int64_t otherwise) {
    auto value = reader.integer(key, {1, most});
    if (!value) value = reader.integer(also, {1, most});
    return value.value_or(otherwise);
  };
  T5Config c;
  c.model_type = type;
  c.bias_per_block = defaults->bias_per_block;
  c.vocab_size = reader.integer("vocab_size", {1, 1 << 28}).value_or(defaults->vocab_size);
  c.d_model = size("d_model", "hidden_size", 1 << 18, 512);
  c.d_kv = size("d_kv", "head_dim", 1 << 12, 64);
  c.d_ff = reader.integer("d_ff", {1, 1 << 20}).value_or(defaults->d_ff);
  c.n_heads = size("num_heads", "num_attention_heads", 1 << 12, defaults->n_heads);
  c.n_layers = size("num_layers", "num_hidden_layers", 1 << 12, defaults->n_layers);
  c.eps = static_cast<float>(reader.number("layer_norm_epsilon", 1e-30, 1).value_or(1e-6));
  c.pad_token_id = reader.integer("pad_token_id", {-1, (1 << 28) - 1})
                       .value_or(reader.is_null("pad_token_id") ? -1 : 0);
  parse_relative_attention(reader, c);
  parse_activation(reader, defaults->feed_forward_proj, c);
  parse_decoder(reader, *defaults, c);
  return c;
}

std::vector<std::pair<std::string, std::string>> T5Config::describe() const {
  return {
      {"model_type", model_type},
      {"n_layers", fmt::format("{}", n_layers)},
      {"d_model", fmt::format("{}", d_model)},
      {"n_heads", fmt::format("{} of d_kv {}", n_heads, d_kv)},
      {"d_ff", fmt::format("{}{}", d_ff, gated ? ", gated" : "")},
      {"activation", activation_name},
      {"vocab_size", fmt::format("{}", vocab_size)},
      {"relative_attention",
       fmt::format("{} buckets to distance {}, {}", relative_buckets, relative_max_distance,
                   bias_per_block ? "in every block" : "shared by all blocks")},
      {"layer_norm_epsilon", fmt::format("{}", eps)},
      {"pad_token_id", pad_token_id < 0 ? "none" : fmt::format("{}", pad_token_id)},
  };
}

std::vector<std::pair<std::string, std::string>> T5Config::describe_decoder() const {
  return {
      {"n_decoder_layers", fmt::format("{}", n_decoder_layers)},
      {"logits", scale_logits ? "scaled by d_model^-0.5" : "not scaled"},
      {"bos_token_id", shown(token_ids.bos)},
      {"eos_token_id", shown(token_ids.eos)},
      {"decoder_start_token_id", shown(token_ids.decoder_start)},
  };
}

}  // namespace quintet
