#include "generation/generation_options.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.h"

namespace quintet {
namespace {

using nlohmann::json;

constexpr int64_t kMaxCount = std::numeric_limits<int32_t>::max();
constexpr int64_t kMaxRows = 4096;

// Each reads a value into `out` and says whether it is of the type and in the range.

bool read(const json& value, int64_t least, int64_t most, int64_t& out) {
  if (!value.is_number_integer()) return false;
  if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(most)) {
    return false;
  }
  out = value.get<int64_t>();
  return out >= least && out <= most;
}

bool read(const json& value, int64_t least, int64_t most, std::optional<int64_t>& out) {
  return read(value, least, most, out.emplace());
}

bool read(const json& value, bool& out) {
  if (!value.is_boolean()) return false;
  out = value.get<bool>();
  return true;
}

bool read(const json& value, double least, double most, double& out) {
  if (!value.is_number()) return false;
  out = value.get<double>();
  return out >= least && out <= most;
}

bool read_positive(const json& value, double most, double& out) {
  return read(value, 0.0, most, out) && static_cast<float>(out) > 0 && std::isfinite(1 / out);
}

// A special token: -1 is how some files write that there is none.
bool read_special(const json& value, std::optional<int64_t>& out) {
  if (!read(value, -1, kMaxCount, out)) return false;
  if (*out == -1) out.reset();
  return true;
}

bool read_ids(const json& value, int64_t least, std::vector<int64_t>& out) {
  out.clear();
  if (!value.is_array()) return false;
  return std::all_of(value.begin(), value.end(), [&](const json& id) {
    return read(id, least, kMaxCount, out.emplace_back());
  });
}

bool read_id_or_ids(const json& value, std::vector<int64_t>& out) {
  const json list = value.is_array() ? value : json::array({value});
  if (!read_ids(list, -1, out)) return false;
  out.erase(std::remove(out.begin(), out.end(), -1), out.end());
  return true;
}

bool read_words(const json& value, std::vector<std::vector<int64_t>>& out) {
  out.clear();
  if (!value.is_array()) return false;
  return std::all_of(value.begin(), value.end(), [&](const json& word) {
    return read_ids(word, 0, out.emplace_back()) && !out.back().empty();
  });
}

bool read_strings(const json& value, std::vector<std::string>& out) {
  out.clear();
  const json list = value.is_array() ? value : json::array({value});
  return std::all_of(list.begin(), list.end(), [&](const json& text) {
    if (!text.is_string() || text.get_ref<const std::string&>().empty()) return false;
    out.push_back(text.get<std::string>());
    return true;
  });
}

bool read_early_stopping(const json& value, EarlyStopping& out) {
  if (value.is_boolean()) {
    out = value.get<bool>() ? EarlyStopping::kTrue : EarlyStopping::kFalse;
    return true;
  }
  out = EarlyStopping::kNever;
  return value == "never";
}

bool read_seed(const json& value, uint64_t& out) {
  if (!value.is_number_unsigned()) return false;
  out = value.get<uint64_t>();
  return true;
}

struct Option {
  std::string_view name;
  std::string_view expected;
  bool (*set)(GenerationConfig&, const json&);
};

constexpr std::string_view kCount = "a whole number from 0";
constexpr std::string_view kPositiveCount = "a whole number from 1";
constexpr std::string_view kRows = "a whole number from 1 to 4096";
constexpr std::string_view kPositive = "a number above 0";
constexpr std::string_view kShare = "a number from 0 to 1";
constexpr std::string_view kId = "a token id";
constexpr std::string_view kIds = "a list of token ids";
constexpr std::string_view kIdOrIds = "a token id or a list of them";

using Config = GenerationConfig;

const Option kOptions[] = {
    {"max_new_tokens", kPositiveCount,
     [](Config& c, const json& v) { return read(v, 1, kMaxCount, c.max_new_tokens); }},
    {"min_new_tokens", kCount,
     [](Config& c, const json& v) { return read(v, 0, kMaxCount, c.min_new_tokens); }},
    {"max_length", kPositiveCount,
     [](Config& c, const json& v) { return read(v, 1, kMaxCount, c.max_length); }},
    {"min_length", kCount,
     [](Config& c, const json& v) { return read(v, 0, kMaxCount, c.min_length); }},
    {"num_beams", kRows,
     [](Config& c, const json& v) { return read(v, 1, kMaxRows, c.num_beams); }},
    {"num_return_sequences", kRows,
     [](Config& c, const json& v) { return read(v, 1, kMaxRows, c.num_return_sequences); }},
    {"do_sample", "true or false", [](Config& c, const json& v) { return read(v, c.do_sample); }},
    {"temperature", kPositive,
     [](Config& c, const json& v) { return read_positive(v, 1e6, c.temperature); }},
    {"top_k", kCount, [](Config& c, const json& v) { return read(v, 0, kMaxCount, c.top_k); }},
    {"top_p", kShare, [](Config& c, const json& v) { return read(v, 0.0, 1.0, c.top_p); }},
    {"min_p", kShare,
     [](Config& c, const json& v) { return read(v, 0.0, 1.0, c.min_p.emplace()); }},
    {"typical_p", "a number above 0, at most 1",
     [](Config& c, const json& v) { return read_positive(v, 1.0, c.typical_p); }},
    {"repetition_penalty", kPositive,
     [](Config& c, const json& v) { return read_positive(v, 1e6, c.repetition_penalty); }},
    {"encoder_repetition_penalty", kPositive,
     [](Config& c, const json& v) { return read_positive(v, 1e6, c.encoder_repetition_penalty); }},
    {"no_repeat_ngram_size", kCount,
     [](Config& c, const json& v) { return read(v, 0, kMaxCount, c.no_repeat_ngram_size); }},
    {"encoder_no_repeat_ngram_size", kCount,
     [](Config& c, const json& v) {
       return read(v, 0, kMaxCount, c.encoder_no_repeat_ngram_size);
     }},
    {"length_penalty", "a number from -100 to 100",
     [](Config& c, const json& v) { return read(v, -100.0, 100.0, c.length_penalty); }},
    {"early_stopping", "true, false or \"never\"",
     [](Config& c, const json& v) { return read_early_stopping(v, c.early_stopping); }},
    {"bad_words_ids", "a list of lists of token ids, none of them empty",
     [](Config& c, const json& v) { return read_words(v, c.bad_words_ids); }},
    {"forced_bos_token_id", kId,
     [](Config& c, const json& v) { return read(v, 0, kMaxCount, c.forced_bos_token_id); }},
    {"forced_eos_token_id", kIdOrIds,
     [](Config& c, const json& v) { return read_id_or_ids(v, c.forced_eos_token_id); }},
    {"suppress_tokens", kIds,
     [](Config& c, const json& v) { return read_ids(v, -1, c.suppress_tokens); }},
    {"begin_suppress_tokens", kIds,
     [](Config& c, const json& v) { return read_ids(v, -1, c.begin_suppress_tokens); }},
    {"stop_strings", "a string or a list of strings, none of them empty",
     [](Config& c, const json& v) { return read_strings(v, c.stop_strings); }},
    {"bos_token_id", kId, [](Config& c, const json& v) { return read_special(v, c.bos_token_id); }},
    {"eos_token_id", kIdOrIds,
     [](Config& c, const json& v) { return read_id_or_ids(v, c.eos_token_id); }},
    {"pad_token_id", kId, [](Config& c, const json& v) { return read_special(v, c.pad_token_id); }},
    {"decoder_start_token_id", kId,
     [](Config& c, const json& v) { return read(v, 0, kMaxCount, c.decoder_start_token_id); }},
};

// Of the caller alone: a model folder has no say in it.
const Option kSeed = {"seed", "a whole number from 0 to 2^64 - 1",
                      [](Config& c, const json& v) { return read_seed(v, c.seed); }};

// What the reference has and quintet does not do.
struct Refused {
  std::string_view name;
  const char* neutral = "null";  // JSON; that and null ask for nothing
  bool harmless = false;         // tells how, or what besides the tokens: a folder may say it
};

constexpr bool kHarmless = true;

const Refused kRefused[] = {
    {"max_time"},
    {"use_mtp", "false", kHarmless},
    {"use_cache", "true", kHarmless},
    {"cache_implementation", "null", kHarmless},
    {"cache_config", "null", kHarmless},
    {"max_cache_len", "null", kHarmless},
    {"top_h"},
    {"epsilon_cutoff", "0.0"},
    {"eta_cutoff", "0.0"},
    {"renormalize_logits", "false"},
    {"remove_invalid_values", "false"},
    {"exponential_decay_length_penalty"},
    {"sequence_bias"},
    {"token_healing", "false"},
    {"guidance_scale", "1.0"},
    {"watermarking_config"},
    {"output_attentions", "false", kHarmless},
    {"output_hidden_states", "false", kHarmless},
    {"output_scores", "false", kHarmless},
    {"output_logits", "false", kHarmless},
    {"return_dict_in_generate", "false", kHarmless},
    {"is_assistant", "false", kHarmless},
    {"num_assistant_tokens", "20", kHarmless},
    {"num_assistant_tokens_schedule", "\"constant\"", kHarmless},
    {"assistant_confidence_threshold", "0.4", kHarmless},
    {"prompt_lookup_num_tokens", "null", kHarmless},
    {"max_matching_ngram_size", "null", kHarmless},
    {"assistant_early_exit", "null", kHarmless},
    {"assistant_lookbehind", "10", kHarmless},
    {"target_lookbehind", "10", kHarmless},
    {"assistant_ensemble_weight"},
    {"speculation_type", "null", kHarmless},
    {"compile_config", "null", kHarmless},
    {"disable_compile", "false", kHarmless},
    {"continuous_batching_config", "null", kHarmless},
    {"low_memory", "false", kHarmless},
    {"penalty_alpha", "0.0"},
    {"dola_layers"},
    {"diversity_penalty", "0.0"},
    {"num_beam_groups", "1"},
    {"constraints"},
    {"force_words_ids"},
    {"prefill_chunk_size", "null", kHarmless},
    // Arguments of generate() itself.
    {"logits_processor"},
    {"stopping_criteria"},
    {"prefix_allowed_tokens_fn"},
    {"synced_gpus", "false", kHarmless},
    {"assistant_model"},
    {"assistant_tokenizer"},
    {"streamer"},
    {"negative_prompt_ids"},
    {"negative_prompt_attention_mask"},
    {"custom_generate"},
    {"trust_remote_code", "false", kHarmless},
    {"tokenizer"},
};

// What files say about themselves.
constexpr std::string_view kNotes[] = {"transformers_version", "_from_model_config",
                                       "_commit_hash"};

// The value as JSON has it; a long one is cut.
std::string shown(const json& value) {
  constexpr size_t kMost = 60;
  std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  if (text.size() > kMost) text = text.substr(0, kMost) + "...";
  return text;
}

std::string printable(std::string_view name) {
  const std::string quoted = shown(json(std::string(name)));
  return quoted.substr(1, quoted.size() - 2);
}

std::string prefix(const std::string& where) { return where.empty() ? "" : where + ": "; }

template <typename Table>
auto find_named(const Table& table, std::string_view name) -> decltype(&*std::begin(table)) {
  const auto found = std::find_if(std::begin(table), std::end(table),
                                  [&](const auto& entry) { return entry.name == name; });
  return found == std::end(table) ? nullptr : &*found;
}

}  // namespace

void set_generation_option(GenerationConfig& config, std::string_view name, const json& value,
                           OptionSource source, const std::string& where) {
  const bool from_caller = source == OptionSource::kCaller;
  const auto kind = from_caller ? ErrorKind::kUsage : ErrorKind::kFile;
  const auto* option = find_named(kOptions, name);
  if (option == nullptr && from_caller && name == kSeed.name) option = &kSeed;
  if (option != nullptr) {
    if (value.is_null() || option->set(config, value)) return;
    fail(kind, "{}'{}' is {}, expected {}", prefix(where), name, shown(value), option->expected);
  }
  if (const auto* refused = find_named(kRefused, name)) {
    if (value.is_null() || value == json::parse(refused->neutral)) return;
    if (!from_caller && refused->harmless) return;
    fail(kind, "{}'{}' is {}, which quintet does not do; leave it out or make it {}", prefix(where),
         name, shown(value), refused->neutral);
  }
  const bool is_note = std::find(std::begin(kNotes), std::end(kNotes), name) != std::end(kNotes);
  if (!from_caller || is_note) return;
  const bool of_record = name == "decoder_input_ids" || name == "input_ids" ||
                         name == "attention_mask" || name == "decoder_attention_mask";
  fail(kind, "{}'{}' is not an option of generating{}", prefix(where), printable(name),
       of_record ? "; it belongs into the records of the input" : "");
}

}  // namespace quintet
