// What the next logits of a row go through before a token is chosen, as edits in the order of the
// reference: penalties, forbidden n-grams and words, minimum length, forced and suppressed tokens.
#ifndef QUINTET_GENERATION_LOGITS_PROCESSORS_H_
#define QUINTET_GENERATION_LOGITS_PROCESSORS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/logit_edit.h"
#include "generation/generation_config.h"
#include "generation/search.h"
#include "generation/token_history.h"

namespace quintet {

class LogitsProcessors {
 public:
  LogitsProcessors(const GenerationConfig& config, const SearchInput& input);

  // Appends the edits of the row numbered `row`, whose tokens so far are `history`. Work and edits
  // are linear in the lengths of the history and the encoder's input.
  void append_edits(int32_t row, const TokenHistory& history, std::vector<LogitEdit>& edits) const;

  int64_t max_length() const { return max_length_; }  // prompt and masked ids included
  // Of a row with that many tokens: its length as the reference counts it, with masked ids.
  int64_t padded_length(size_t n_tokens) const {
    return static_cast<int64_t>(n_tokens) + n_masked_;
  }

 private:
  class Row;
  void ban_repeats(Row& row, const TokenHistory& history) const;
  void ban_words(Row& row, const TokenHistory& history) const;
  void force(Row& row, int64_t length) const;

  GenerationConfig config_;
  TokenHistory encoder_input_;
  int64_t vocab_size_ = 0;
  int64_t prompt_length_ = 0;  // with masked ids
  int64_t n_masked_ = 0;
  int64_t max_length_ = 0;
  int64_t min_length_ = 0;
  int64_t begin_length_ = 0;  // at which begin_suppress_tokens holds
};

}  // namespace quintet

#endif  // QUINTET_GENERATION_LOGITS_PROCESSORS_H_
