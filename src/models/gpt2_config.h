// config.json of GPT-2. Every switch that the model's arithmetic knows of is a field here.
#ifndef QUINTET_MODELS_GPT2_CONFIG_H_
#define QUINTET_MODELS_GPT2_CONFIG_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "backends/device.h"
#include "models/token_ids.h"

namespace quintet {

struct Gpt2Config {
  int64_t vocab_size = 0;
  int64_t n_positions = 0;
  int64_t d_model = 0;
  int64_t n_layers = 0;
  int64_t n_heads = 0;
  int64_t d_ff = 0;
  float eps = 0;  // of the norms
  Activation activation = Activation::kNone;
  std::string activation_name;  // as the file spells it
  bool scale_scores = true;     // by d_kv^-0.5
  bool scale_by_layer = false;  // scores of block i are divided by i + 1 besides
  bool ties = true;             // a file without lm_head.weight has wte.weight for a head
  TokenIds token_ids;

  int64_t d_kv() const { return d_model / n_heads; }
  float score_scale(int64_t block) const;
  std::vector<std::pair<std::string, std::string>> describe() const;
};

// As parse_t5_config.
Gpt2Config parse_gpt2_config(const nlohmann::json& config, const std::string& where);

}  // namespace quintet

#endif  // QUINTET_MODELS_GPT2_CONFIG_H_
