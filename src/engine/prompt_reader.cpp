#include "engine/prompt_reader.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "engine/sequence.h"

namespace quintet {
namespace {

std::vector<int32_t> narrow_ids(const std::vector<int64_t>& ids) {
  return {ids.begin(), ids.end()};
}

}  // namespace

PromptReader::PromptReader(const Options& options, InputFormat format,
                           const GenerationFolder& folder, const GenerationConfig& config)
    : options_(options),
      folder_(folder),
      config_(config),
      start_token_(folder.decoder->reads_encoder() ? decoder_start_token(config) : 0),
      encoder_(options, format, folder.decoder->vocab_size()) {}

void PromptReader::check_ids(const std::vector<int64_t>& ids, const char* key) const {
  const int64_t size = folder_.decoder->vocab_size();
  const auto bad = std::ranges::find_if(ids, [&](int64_t id) { return id < 0 || id >= size; });
  if (bad == ids.end()) return;
  fail(ErrorKind::kRecord, "'{}' holds {} at position {}, the model's vocabulary has 0 to {}", key,
       *bad, bad - ids.begin(), size - 1);
}

// The ids that the first stack reads: unmasked, their places kept.
Sequence PromptReader::read_source(const Record& record, std::string& rejected, bool& empty) {
  EncodedRecord encoded = encoder_.encode(record);
  rejected = std::move(encoded.rejected);
  empty = encoded.empty;
  if (rejected.empty() && encoded.sequence.tokens.empty()) {
    rejected = "'attention_mask' leaves no id of it";
  }
  return std::move(encoded.sequence);
}

Prompt PromptReader::read(const Record& record) {
  Prompt prompt;
  const bool reads_encoder = folder_.decoder->reads_encoder();
  try {
    Sequence ids = read_source(record, prompt.rejected, prompt.empty);
    if (reads_encoder) {
      prompt.source = std::move(ids);
      check_ids(record.decoder_input_ids, "decoder_input_ids");
      prompt.tokens = narrow_ids(record.decoder_input_ids);
      if (prompt.tokens.empty() || prompt.tokens.front() != start_token_) {
        prompt.tokens.insert(prompt.tokens.begin(), start_token_);
      }
      prompt.padded_length = static_cast<int64_t>(prompt.tokens.size());
      return prompt;
    }
    if (!record.decoder_input_ids.empty()) {
      fail(ErrorKind::kRecord, "'decoder_input_ids' are for models with an encoder");
    }
    const bool is_text = !record.has_ids && tokenizer() != nullptr;
    if (is_text && ids.tokens.empty() && config_.bos_token_id) {  // the empty text
      prompt.rejected.clear();
      prompt.empty = false;
      ids.tokens = {static_cast<int32_t>(*config_.bos_token_id)};
    }
    prompt.tokens = std::move(ids.tokens);
    prompt.padded_length =
        static_cast<int64_t>(record.has_ids ? record.input_ids.size() : prompt.tokens.size());
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kRecord) throw;
    prompt.rejected = error.what();
  }
  return prompt;
}

ScoredPrompt PromptReader::read_scored(const Record& record, bool with_choices) {
  ScoredPrompt prompt;
  try {
    if (folder_.decoder->reads_encoder()) {
      prompt.item.source = read_source(record, prompt.rejected, prompt.empty);
      if (prompt.rejected.empty()) score_labels(record, prompt);
    } else {
      score_own_tokens(record, prompt);
    }
    if (!prompt.rejected.empty()) return prompt;
    if (with_choices) {
      prompt.rows = {static_cast<int32_t>(prompt.item.decoder.tokens.size()) - 1};
      prompt.labels.clear();
    }
    const int64_t bound = folder_.decoder->max_positions();
    const auto& positions = prompt.item.decoder.positions;
    const int64_t last = positions.empty()
                             ? static_cast<int64_t>(prompt.item.decoder.tokens.size()) - 1
                             : positions.back();
    if (bound > 0 && last >= bound) {
      fail(ErrorKind::kRecord, "has a token at position {}, the model has 0 to {}", last,
           bound - 1);
    }
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kRecord) throw;
    prompt.rejected = error.what();
  }
  prompt.item.decoder.ordinal = record.ordinal;
  return prompt;
}

// T5: labels are what the decoder is to say; it reads them shifted right by one, behind the start
// token.
void PromptReader::score_labels(const Record& record, ScoredPrompt& prompt) {
  std::vector<int64_t> labels = record.labels;
  if (record.target) {
    if (!labels.empty()) fail(ErrorKind::kRecord, "has both 'target' and 'labels'");
    if (tokenizer() == nullptr) {
      fail(ErrorKind::kRecord, "'target' needs the files of a tokenizer in {}; give 'labels'",
           options_.model);
    }
    const auto ids = tokenizer()->encode(*record.target, true);
    labels.assign(ids.begin(), ids.end());
  }
  std::vector<int64_t> ids = record.decoder_input_ids;
  if (ids.empty() && !labels.empty()) {
    ids.push_back(start_token_);
    for (size_t i = 0; i + 1 < labels.size(); ++i) {
      if (labels[i] == kIgnoredLabel && !config_.pad_token_id) {
        fail(ErrorKind::kRecord,
             "'labels' holds -100 at position {}, which the decoder reads as pad, and the model "
             "has no pad_token_id",
             i);
      }
      ids.push_back(labels[i] == kIgnoredLabel ? *config_.pad_token_id : labels[i]);
    }
  } else if (labels.empty()) {  // the decoder's ids are scored themselves
    if (ids.empty()) ids.push_back(start_token_);
    labels.assign(ids.begin() + 1, ids.end());
    labels.push_back(kIgnoredLabel);
  }
  if (labels.size() != ids.size()) {
    fail(ErrorKind::kRecord, "'labels' has {} entries for {} decoder_input_ids", labels.size(),
         ids.size());
  }
  check_ids(ids, "decoder_input_ids");
  prompt.item.decoder.tokens = narrow_ids(ids);
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] == kIgnoredLabel) continue;
    check_ids({labels[i]}, "labels");
    prompt.rows.push_back(static_cast<int32_t>(i));
    prompt.labels.push_back(static_cast<int32_t>(labels[i]));
  }
}

// GPT-2: each token is foretold by the row before it. A masked row is not computed, and what it
// would foretell is not scored.
void PromptReader::score_own_tokens(const Record& record, ScoredPrompt& prompt) {
  std::vector<int64_t> ids = record.input_ids;
  std::vector<int64_t> labels = record.labels;
  if (!record.has_ids) {
    EncodedRecord encoded = encoder_.encode(record);
    ids.assign(encoded.sequence.tokens.begin(), encoded.sequence.tokens.end());
    if (record.target && tokenizer() != nullptr) {  // the continuation alone is scored
      const auto more = tokenizer()->encode(*record.target, false);
      labels.assign(ids.size(), kIgnoredLabel);
      ids.insert(ids.end(), more.begin(), more.end());
      labels.insert(labels.end(), more.begin(), more.end());
    } else if (!encoded.rejected.empty()) {
      prompt.rejected = encoded.rejected;
      prompt.empty = encoded.empty;
      return;
    }
  } else if (record.target) {
    fail(ErrorKind::kRecord, "'target' goes with 'text'; with 'input_ids' give 'labels'");
  }
  prompt.mask = record.attention_mask;
  if (options_.add_bos) {
    if (!config_.bos_token_id) {
      fail(ErrorKind::kUsage, "--add-bos: the model has no bos_token_id");
    }
    ids.insert(ids.begin(), *config_.bos_token_id);
    if (!labels.empty()) labels.insert(labels.begin(), kIgnoredLabel);
    if (!prompt.mask.empty()) prompt.mask.insert(prompt.mask.begin(), 1);
  }
  if (ids.empty()) fail(ErrorKind::kRecord, "no tokens");
  check_ids(ids, "input_ids");
  if (!labels.empty() && labels.size() != ids.size()) {
    fail(ErrorKind::kRecord, "'labels' has {} entries for {} input_ids", labels.size(), ids.size());
  }
  if (!record.position_ids.empty() && record.position_ids.size() != ids.size()) {
    fail(ErrorKind::kRecord, "'position_ids' has {} entries for {} input_ids",
         record.position_ids.size(), ids.size());
  }
  int32_t row_before = -1;  // of the id before, where that is not masked
  for (size_t i = 0; i < ids.size(); ++i) {
    const bool kept = prompt.mask.empty() || prompt.mask[i] != 0;
    const int64_t label = labels.empty() ? (kept ? ids[i] : kIgnoredLabel) : labels[i];
    if (row_before >= 0 && label != kIgnoredLabel) {
      check_ids({label}, "labels");
      prompt.rows.push_back(row_before);
      prompt.labels.push_back(static_cast<int32_t>(label));
    }
    row_before = kept ? static_cast<int32_t>(prompt.item.decoder.tokens.size()) : -1;
    if (!kept) continue;
    const int64_t position =
        record.position_ids.empty() ? static_cast<int64_t>(i) : record.position_ids[i];
    auto& positions = prompt.item.decoder.positions;
    if (position < 0 || (!positions.empty() && position <= positions.back())) {
      fail(ErrorKind::kRecord, "'position_ids' is {} at place {}, expected to rise from 0 on",
           position, i);
    }
    if (position >= int64_t{1} << 30) fail(ErrorKind::kRecord, "'position_ids' is {}", position);
    prompt.item.decoder.tokens.push_back(static_cast<int32_t>(ids[i]));
    positions.push_back(static_cast<int32_t>(position));
  }
  if (prompt.item.decoder.tokens.empty()) {
    fail(ErrorKind::kRecord, "'attention_mask' leaves no id of it");
  }
}

}  // namespace quintet
