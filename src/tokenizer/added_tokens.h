// Tokens beside the model's vocabulary, such as </s> and <extra_id_0>: they are cut out of the text
// before the model sees it.
#ifndef QUINTET_TOKENIZER_ADDED_TOKENS_H_
#define QUINTET_TOKENIZER_ADDED_TOKENS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tokenizer/byte_trie.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/word_model.h"

namespace quintet {

struct AddedToken {
  std::string content;
  bool single_word = false;        // only where no word character stands beside it
  bool lstrip = false;             // takes the white space to its left along
  bool rstrip = false;             // and to its right
  bool normalized = false;         // looked for, normalised, in the normalised text
  bool special = false;            // left out of decoded text where that is asked for
  bool strips_separators = false;  // U+001C ... U+001F are white space for lstrip and rstrip, too
  std::optional<int32_t> id = std::nullopt;  // set where the files' number counts, see AddedTokens
};

class AddedTokens {
 public:
  struct Part {  // bytes [begin, end) of the text: a token, or text between tokens
    std::optional<int32_t> id;
    size_t begin = 0;
    size_t end = 0;
  };

  // A token that the model has keeps the model's id, the others are numbered from the model's
  // vocabulary size on in the order given, unless they bring an id. A token given twice counts as
  // last given. `where` begins the messages of Error(kFile).
  AddedTokens(const std::vector<AddedToken>& tokens, const WordModel& model,
              const Normalizer* normalizer, const std::string& where);

  // Hands out the parts of a text one by one; empty ones are left out. Lives no longer than the
  // text and the tokens.
  class Parts {
   public:
    std::optional<Part> next();

   private:
    friend class AddedTokens;
    Parts(const AddedTokens& tokens, const ByteTrie& trie, std::string_view text)
        : tokens_(&tokens), trie_(&trie), text_(text) {}
    std::optional<Part> next_token();

    const AddedTokens* tokens_;
    const ByteTrie* trie_;
    std::string_view text_;
    size_t at_ = 0;
    size_t done_ = 0;                          // all before has been handed out, or stands in held_
    std::optional<Part> held_ = std::nullopt;  // a token, behind the text that was handed out
  };

  // Cuts out the tokens that are looked for in raw (normalised) text: from the left, the longest
  // first.
  Parts split_raw(std::string_view text) const { return {*this, raw_, text}; }
  Parts split_normalized(std::string_view text) const { return {*this, normalized_, text}; }

  std::optional<int32_t> find(std::string_view content) const;
  std::string_view piece(int32_t id) const;  // "" where there is none
  bool is_special(std::string_view content) const;
  int32_t end_id() const;  // one past the largest id, 0 where there is none

 private:
  std::map<std::string, int32_t, std::less<>> ids_;
  std::unordered_map<int32_t, AddedToken> tokens_;
  ByteTrie raw_;
  ByteTrie normalized_;
};

}  // namespace quintet

#endif  // QUINTET_TOKENIZER_ADDED_TOKENS_H_
