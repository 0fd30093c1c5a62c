#include "generation/logits_processors.h"

#include <algorithm>
#include <limits>

namespace quintet {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

bool is_eos(const GenerationConfig& config, int64_t token) {
  return std::find(config.eos_token_id.begin(), config.eos_token_id.end(), token) !=
         config.eos_token_id.end();
}

// Calls `ban` with each token that follows, anywhere in `text`, the last n - 1 of `ids`.
template <typename Ban>
void for_each_follower(std::span<const int32_t> text, std::span<const int32_t> ids, size_t n,
                       const Ban& ban) {
  if (ids.size() + 1 < n || text.size() < n) return;
  const auto prefix = ids.last(n - 1);
  for (size_t at = 0; at + n <= text.size(); ++at) {
    if (std::equal(prefix.begin(), prefix.end(), text.begin() + static_cast<ptrdiff_t>(at))) {
      ban(text[at + n - 1]);
    }
  }
}

}  // namespace

// The edits of one row; tokens outside the vocabulary are none.
class LogitsProcessors::Row {
 public:
  Row(int32_t row, int64_t vocab_size, std::vector<LogitEdit>& edits)
      : row_(row), vocab_size_(vocab_size), first_(edits.size()), edits_(edits) {}

  void edit(LogitEdit::Kind kind, int64_t token, float value) {
    if (token < 0 || token >= vocab_size_) return;
    edits_.push_back({kind, row_, static_cast<int32_t>(token), value});
  }
  void ban(int64_t token) { edit(LogitEdit::Kind::kSet, token, kNever); }
  // Only these tokens remain; whatever was done to the row before does not matter any more.
  void allow_only(std::span<const int64_t> tokens) {
    edits_.resize(first_);
    edits_.push_back({LogitEdit::Kind::kFillRow, row_, 0, kNever});
    for (const int64_t token : tokens) edit(LogitEdit::Kind::kSet, token, 0.0F);
  }

 private:
  int32_t row_;
  int64_t vocab_size_;
  size_t first_;
  std::vector<LogitEdit>& edits_;
};

LogitsProcessors::LogitsProcessors(const GenerationConfig& config, const SearchInput& input)
    : config_(config), encoder_input_(input.encoder_input), vocab_size_(input.vocab_size) {
  const auto n_prompt = static_cast<int64_t>(input.prompt.size());
  prompt_length_ = std::max(input.padded_prompt_length, n_prompt);
  n_masked_ = prompt_length_ - n_prompt;
  max_length_ = resolved_max_length(config, prompt_length_, input.max_positions);
  // What is chosen at the last position is never read.
  if (input.max_positions > 0) {
    max_length_ = std::min(max_length_, n_masked_ + input.max_positions + 1);
  }
  min_length_ = config.min_new_tokens ? prompt_length_ + *config.min_new_tokens : config.min_length;
  // A forced first token comes before the beginning.
  const bool after_forced = prompt_length_ == 1 && config.forced_bos_token_id;
  begin_length_ = after_forced ? 2 : prompt_length_;
}

void LogitsProcessors::ban_repeats(Row& row, const TokenHistory& history) const {
  const auto ban = [&row](int32_t token) { row.ban(token); };
  if (const int64_t n = config_.no_repeat_ngram_size; n == 1) {
    std::for_each(history.distinct().begin(), history.distinct().end(), ban);
  } else if (n > 1) {
    for_each_follower(history.ids(), history.ids(), static_cast<size_t>(n), ban);
  }
  if (const int64_t n = config_.encoder_no_repeat_ngram_size; n == 1) {
    std::for_each(encoder_input_.distinct().begin(), encoder_input_.distinct().end(), ban);
  } else if (n > 1) {
    for_each_follower(encoder_input_.ids(), history.ids(), static_cast<size_t>(n), ban);
  }
}

void LogitsProcessors::ban_words(Row& row, const TokenHistory& history) const {
  const auto& ids = history.ids();
  for (const auto& word : config_.bad_words_ids) {
    if (word.empty() || (word.size() == 1 && is_eos(config_, word.front()))) continue;
    const size_t n_before = word.size() - 1;
    if (n_before <= ids.size() &&
        std::equal(word.begin(), word.end() - 1, ids.end() - static_cast<ptrdiff_t>(n_before))) {
      row.ban(word.back());
    }
  }
}

void LogitsProcessors::force(Row& row, int64_t length) const {
  if (config_.forced_bos_token_id && length == 1) {
    row.allow_only(std::span(&*config_.forced_bos_token_id, 1));
  }
  if (!config_.forced_eos_token_id.empty() && length == max_length_ - 1) {
    row.allow_only(config_.forced_eos_token_id);
  }
}

void LogitsProcessors::append_edits(int32_t row_number, const TokenHistory& history,
                                    std::vector<LogitEdit>& edits) const {
  Row row(row_number, vocab_size_, edits);
  const int64_t length = padded_length(history.ids().size());
  if (config_.encoder_repetition_penalty != 1.0) {
    const auto reward = static_cast<float>(1.0 / config_.encoder_repetition_penalty);
    for (const int32_t token : encoder_input_.distinct()) {
      row.edit(LogitEdit::Kind::kPenalise, token, reward);
    }
  }
  if (config_.repetition_penalty != 1.0) {
    const auto penalty = static_cast<float>(config_.repetition_penalty);
    for (const int32_t token : history.distinct()) {
      row.edit(LogitEdit::Kind::kPenalise, token, penalty);
    }
  }
  ban_repeats(row, history);
  ban_words(row, history);
  if (length < min_length_) {
    for (const int64_t token : config_.eos_token_id) row.ban(token);
  }
  force(row, length);
  for (const int64_t token : config_.suppress_tokens) row.ban(token);
  if (length == begin_length_) {
    for (const int64_t token : config_.begin_suppress_tokens) row.ban(token);
  }
}

}  // namespace quintet
