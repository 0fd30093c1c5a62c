// The byte-level alphabet of GPT-2: each byte of a text is one printable character, so that a
// vocabulary of strings can hold any bytes. Here are the alphabet and the pre-tokenizer that cuts a
// text into words and spells them in it.
#ifndef QUINTET_TOKENIZER_BYTE_LEVEL_H_
#define QUINTET_TOKENIZER_BYTE_LEVEL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tokenizer/pre_tokenizer.h"

namespace quintet {

// The character of `byte`, in UTF-8.
std::string_view byte_level_character(unsigned char byte);

// The bytes that `piece` spells; nothing where one of its characters is not of the alphabet.
std::optional<std::string> byte_level_bytes(std::string_view piece);

// With `add_prefix_space` a text that does not begin with a space gets one. Without `cut_words` the
// text is one word.
std::unique_ptr<PreTokenizer> make_byte_level(bool add_prefix_space, bool cut_words);

}  // namespace quintet

#endif  // QUINTET_TOKENIZER_BYTE_LEVEL_H_
