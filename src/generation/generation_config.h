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
  std::optional<int64_t> min_new_tokens;
  int64_t max_length = 20;  // of the decoder's ids, prompt or start token included
  int64_t min_length = 0;
  int64_t num_beams = 1;
  int64_t num_return_sequences = 1;
  bool do_sample = false;
  double temperature = 1.0;
  int64_t top_k = 50;
  double top_p = 1.0;
  std::optional<double> min_p;
  double typical_p = 1.0;
  double repetition_penalty = 1.0;
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

// What the folder says. A name that HF has and quintet does not do is an error where its value
// would change the output, and nothing where it has HF's neutral default. Throws Error(kFile).
GenerationConfig load_generation_config(const std::filesystem::path& folder);

// Puts the caller's values on top: `json` is an object of names as above. Throws Error(kUsage) that
// names what is unknown, of a wrong type, out of range, or not done by quintet, never ignores it.
void apply_generation_options(GenerationConfig& config, const nlohmann::json& json,
                              const std::string& where);

// What does not go together (num_return_sequences > num_beams without sampling, beams with
// sampling if not done, min above max, ids outside the vocabulary, ...). Throws Error(kUsage).
void check_generation_config(const GenerationConfig& config, int64_t vocab_size);

}  // namespace quintet

#endif  // QUINTET_GENERATION_GENERATION_CONFIG_H_
