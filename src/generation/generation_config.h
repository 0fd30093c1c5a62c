// How to generate: the names and defaults of Hugging Face's generation config. Values come from
// generation_config.json, else config.json, else these defaults; the caller's come on top.
#ifndef QUINTET_GENERATION_GENERATION_CONFIG_H_
#define QUINTET_GENERATION_GENERATION_CONFIG_H_

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace quintet {

enum class EarlyStopping { kFalse, kTrue, kNever };

struct GenerationConfig {
  std::optional<int64_t> max_new_tokens;  // wins over max_length
  std::optional<int64_t> min_new_tokens;  // wins over min_length
  // Of the decoder's ids, prompt or start token included; none: 20 new tokens, as the reference.
  std::optional<int64_t> max_length;
  int64_t min_length = 0;
  int64_t num_beams = 1;
  int64_t num_return_sequences = 1;
  bool do_sample = false;
  double temperature = 1.0;
  int64_t top_k = 50;  // 0: off
  double top_p = 1.0;
  std::optional<double> min_p;
  double typical_p = 1.0;
  double repetition_penalty = 1.0;
  double encoder_repetition_penalty = 1.0;
  int64_t no_repeat_ngram_size = 0;
  int64_t encoder_no_repeat_ngram_size = 0;
  double length_penalty = 1.0;
  EarlyStopping early_stopping = EarlyStopping::kFalse;
  std::vector<std::vector<int64_t>> bad_words_ids;
  std::optional<int64_t> forced_bos_token_id;
  std::vector<int64_t> forced_eos_token_id;
  std::vector<int64_t> suppress_tokens;
  std::vector<int64_t> begin_suppress_tokens;
  std::vector<std::string> stop_strings;
  std::optional<int64_t> bos_token_id;
  std::vector<int64_t> eos_token_id;
  std::optional<int64_t> pad_token_id;
  std::optional<int64_t> decoder_start_token_id;
  uint64_t seed = 0;  // of sampling; not HF's
};

// What the folder says. Where there is a generation_config.json, config.json only fills in special
// token ids that it does not mention. A name that HF has and quintet does not do is an error where
// its value would change the output, and nothing otherwise. Throws Error(kFile).
GenerationConfig load_generation_config(const std::filesystem::path& folder);

// Puts the caller's values on top: `json` is an object of names as above; null leaves a value as it
// is. Throws Error(kUsage), beginning with `where`, that names what is unknown, of a wrong type,
// out of range, or not done by quintet; nothing is ignored. `config` is unchanged where it throws.
void apply_generation_options(GenerationConfig& config, const nlohmann::json& json,
                              const std::string& where);

// What does not go together (several sequences from greedy search, more than there are beams, a
// minimum above the maximum, ids outside the vocabulary, ...). Throws Error(kUsage). Special token
// ids outside the vocabulary are let pass: they never come up.
void check_generation_config(const GenerationConfig& config, int64_t vocab_size);

// The token that a decoder with an encoder starts from: decoder_start_token_id, else bos_token_id,
// as in the reference. Throws Error(kUsage) where neither is known.
int32_t decoder_start_token(const GenerationConfig& config);

// The length at which a search stops, the prompt included. `padded_prompt_length` counts masked
// ids; max_positions (0: no bound) bounds only the default of 20 new tokens.
int64_t resolved_max_length(const GenerationConfig& config, int64_t padded_prompt_length,
                            int64_t max_positions);

}  // namespace quintet

#endif  // QUINTET_GENERATION_GENERATION_CONFIG_H_
