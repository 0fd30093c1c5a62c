// From tokens back to text: the decoders of tokenizer.json. Text comes out token by token, as soon
// as what follows cannot change it.
#ifndef QUINTET_TOKENIZER_TOKEN_DECODER_H_
#define QUINTET_TOKENIZER_TOKEN_DECODER_H_

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace quintet {

// The text of one row of tokens.
class TokenText {
 public:
  virtual ~TokenText() = default;
  // Appends to `out` what is final. `is_added`: an added token, not a piece of the model.
  virtual void push(std::string_view piece, bool is_added, std::string& out) = 0;
  virtual void flush(std::string& /*out*/) {}  // the rest
};

using TokenDecoder = std::function<std::unique_ptr<TokenText>()>;

// Of a null `spec` tokens have a space between them. What is not known is an Error(kFile) of the
// decoder's call, as tokens can be made without it.
TokenDecoder make_token_decoder(const nlohmann::json& spec, const std::string& where);

// Marks become spaces; those of the first token go, with `drops_first`.
TokenDecoder make_metaspace_decoder(std::string mark, bool drops_first);
// Bytes of the byte-level alphabet; what is not UTF-8 becomes U+FFFD.
TokenDecoder make_byte_level_decoder();
// Each piece is the character of the byte's number; what is not UTF-8 is left out.
TokenDecoder make_byt5_decoder();

}  // namespace quintet

#endif  // QUINTET_TOKENIZER_TOKEN_DECODER_H_
