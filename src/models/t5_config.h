// config.json of the T5 family: T5, v1.1 / flan, mT5, uMT5, ByT5, ProtT5, Ankh. Every difference
// between them that a model's arithmetic knows of is a field here.
#ifndef QUINTET_MODELS_T5_CONFIG_H_
#define QUINTET_MODELS_T5_CONFIG_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "backends/device.h"
#include "models/token_ids.h"

namespace quintet {

struct T5Config {
  std::string model_type;  // "t5", "mt5", "umt5"
  int64_t vocab_size = 0;
  int64_t d_model = 0;
  int64_t d_kv = 0;  // of one head; n_heads * d_kv need not be d_model
  int64_t d_ff = 0;
  int64_t n_heads = 0;
  int64_t n_layers = 0;  // of the encoder
  int64_t relative_buckets = 0;
  int64_t relative_max_distance = 0;
  float eps = 0;  // of the norms
  Activation activation = Activation::kNone;
  std::string activation_name;  // as the file spells it
  bool gated = false;           // wi_0 and wi_1 instead of wi
  bool bias_per_block = false;  // uMT5: a relative_attention_bias in each block, not in 0 alone
  int64_t pad_token_id = 0;     // -1: the file says null

  bool has_decoder = true;       // false: the class that saved it is an encoder alone
  int64_t n_decoder_layers = 0;  // where the file leaves it out, as many as the encoder's
  bool scale_logits = false;     // by d_model^-0.5, before the head
  TokenIds token_ids;

  int64_t inner() const { return n_heads * d_kv; }
  std::vector<std::pair<std::string, std::string>> describe() const;          // the encoder
  std::vector<std::pair<std::string, std::string>> describe_decoder() const;  // what it has beyond
};

// `config` is config.json's object, `where` its file name for messages. Every value is checked
// against bounds within which no product of sizes overflows. Throws Error(kFile) that names the
// key, what was found and what was expected.
T5Config parse_t5_config(const nlohmann::json& config, const std::string& where);

}  // namespace quintet

#endif  // QUINTET_MODELS_T5_CONFIG_H_
