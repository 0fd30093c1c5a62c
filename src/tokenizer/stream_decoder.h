// Text of token ids that come one after the other: each call gives what the ids so far have made
// final. All pieces together are the text that decoding all ids at once gives.
#ifndef QUINTET_TOKENIZER_STREAM_DECODER_H_
#define QUINTET_TOKENIZER_STREAM_DECODER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/token_decoder.h"

namespace quintet {

class StreamDecoder {
 public:
  struct Token {
    std::string_view piece;
    bool is_added = false;
  };
  // What an id stands for; nothing where it adds no text.
  using Lookup = std::function<std::optional<Token>(int32_t id)>;

  // With `clean_up` spaces before punctuation and English endings are taken out.
  StreamDecoder(Lookup lookup, std::unique_ptr<TokenText> text, bool clean_up);

  // Valid UTF-8, "" where all is held back: an incomplete character, or a space that may go.
  std::string push(int32_t id);
  // What was held back; an incomplete character is treated as the tokenizer's decoder does. To be
  // called once, at the end.
  std::string flush();

 private:
  // Replaces a string in text that comes in pieces.
  class Replacement {
   public:
    Replacement(std::string_view from, std::string_view to) : from_(from), to_(to) {}
    std::string push(std::string_view text);
    std::string flush() { return std::move(held_); }

   private:
    std::string_view from_;
    std::string_view to_;
    std::string held_;  // may be the beginning of `from`
  };

  Lookup lookup_;
  std::unique_ptr<TokenText> text_;
  std::vector<Replacement> clean_up_;  // one behind the other
};

}  // namespace quintet

#endif  // QUINTET_TOKENIZER_STREAM_DECODER_H_
