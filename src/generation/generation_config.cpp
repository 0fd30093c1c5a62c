#include "generation/generation_config.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/json.h"
#include "generation/generation_options.h"

namespace quintet {
namespace {

using nlohmann::json;

// None where there is no such file.
std::optional<json> read_object(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::nullopt;
  json object = parse_json_file(path);
  if (!object.is_object()) {
    fail(ErrorKind::kFile, "{}: holds {}, expected a JSON object", path.string(),
         object.type_name());
  }
  return object;
}

bool is_special_token(const std::string& name) {
  return name == "bos_token_id" || name == "eos_token_id" || name == "pad_token_id" ||
         name == "decoder_start_token_id";
}

void check_id(const char* name, int64_t id, int64_t vocab_size) {
  if (id < vocab_size) return;
  fail(ErrorKind::kUsage, "{}: holds token {}, expected ids below the vocabulary's size, {}", name,
       id, vocab_size);
}

void check_lengths(const GenerationConfig& config) {
  if (config.max_new_tokens) {
    if (config.min_new_tokens.value_or(0) > *config.max_new_tokens) {
      fail(ErrorKind::kUsage, "min_new_tokens is {} and max_new_tokens {}, expected no more",
           *config.min_new_tokens, *config.max_new_tokens);
    }
  } else if (config.max_length && !config.min_new_tokens &&
             config.min_length > *config.max_length) {
    fail(ErrorKind::kUsage, "min_length is {} and max_length {}, expected no more",
         config.min_length, *config.max_length);
  }
}

void check_rows(const GenerationConfig& config, int64_t vocab_size) {
  const int64_t n_returned = config.num_return_sequences;
  if (config.num_beams == 1) {
    if (n_returned > 1 && !config.do_sample) {
      fail(ErrorKind::kUsage,
           "num_return_sequences is {}, but greedy search finds one; set num_beams or do_sample",
           n_returned);
    }
    return;
  }
  if (n_returned > config.num_beams) {
    fail(ErrorKind::kUsage, "num_return_sequences is {} and num_beams {}, expected no more",
         n_returned, config.num_beams);
  }
  const auto n_eos = static_cast<int64_t>(config.eos_token_id.size());
  if (n_eos >= vocab_size || vocab_size < 2) {
    fail(ErrorKind::kUsage,
         "num_beams is {}, but {} eos tokens of a vocabulary of {} leave no token to go on with",
         config.num_beams, n_eos, vocab_size);
  }
}

// Forcing what is suppressed leaves no token at all.
void check_forced(const char* name, const std::vector<int64_t>& forced,
                  const GenerationConfig& config) {
  const auto& suppressed = config.suppress_tokens;
  const bool all = std::all_of(forced.begin(), forced.end(), [&](int64_t token) {
    return std::find(suppressed.begin(), suppressed.end(), token) != suppressed.end();
  });
  if (forced.empty() || !all) return;
  fail(ErrorKind::kUsage, "{}: token {} is also in suppress_tokens; take it out of one of them",
       name, forced.front());
}

}  // namespace

GenerationConfig load_generation_config(const std::filesystem::path& folder) {
  GenerationConfig config;
  const auto own_path = folder / "generation_config.json";
  const auto model_path = folder / "config.json";
  const auto own = read_object(own_path);
  if (own) {
    for (const auto& [name, value] : own->items()) {
      set_generation_option(config, name, value, OptionSource::kFolder, own_path.string());
    }
  }
  if (const auto model = read_object(model_path)) {
    for (const auto& [name, value] : model->items()) {
      if (own && (!is_special_token(name) || own->contains(name))) continue;
      set_generation_option(config, name, value, OptionSource::kFolder, model_path.string());
    }
  }
  return config;
}

void apply_generation_options(GenerationConfig& config, const json& options,
                              const std::string& where) {
  if (!options.is_object()) {
    fail(ErrorKind::kUsage, "{}{} where an object of generation options was expected",
         where.empty() ? "" : where + ": ", options.type_name());
  }
  GenerationConfig changed = config;
  for (const auto& [name, value] : options.items()) {
    set_generation_option(changed, name, value, OptionSource::kCaller, where);
  }
  config = std::move(changed);
}

void check_generation_config(const GenerationConfig& config, int64_t vocab_size) {
  check_lengths(config);
  check_rows(config, vocab_size);
  for (const auto& word : config.bad_words_ids) {
    for (const int64_t id : word) check_id("bad_words_ids", id, vocab_size);
  }
  std::vector<int64_t> forced_bos;
  if (config.forced_bos_token_id) forced_bos.push_back(*config.forced_bos_token_id);
  for (const int64_t id : forced_bos) check_id("forced_bos_token_id", id, vocab_size);
  for (const int64_t id : config.forced_eos_token_id) {
    check_id("forced_eos_token_id", id, vocab_size);
  }
  check_forced("forced_bos_token_id", forced_bos, config);
  check_forced("forced_eos_token_id", config.forced_eos_token_id, config);
  if (config.decoder_start_token_id) {
    check_id("decoder_start_token_id", *config.decoder_start_token_id, vocab_size);
  }
}

int32_t decoder_start_token(const GenerationConfig& config) {
  const auto token =
      config.decoder_start_token_id ? config.decoder_start_token_id : config.bos_token_id;
  if (!token) {
    fail(ErrorKind::kUsage,
         "decoder_start_token_id: neither the model folder nor the options say what the decoder "
         "starts with; set it");
  }
  return static_cast<int32_t>(*token);
}

int64_t resolved_max_length(const GenerationConfig& config, int64_t padded_prompt_length,
                            int64_t max_positions) {
  constexpr int64_t kDefaultNewTokens = 20;
  if (config.max_new_tokens) return padded_prompt_length + *config.max_new_tokens;
  if (config.max_length) return *config.max_length;
  const int64_t length = padded_prompt_length + kDefaultNewTokens;
  return max_positions > 0 ? std::min(length, max_positions) : length;
}

}  // namespace quintet
