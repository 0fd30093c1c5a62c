// ByT5's model: each byte b of the text is token b + 3.
#ifndef QUINTET_TOKENIZER_BYTE_MODEL_H_
#define QUINTET_TOKENIZER_BYTE_MODEL_H_

#include "tokenizer/word_model.h"

namespace quintet {

// Tokens 0, 1 and 2 are none of its own: <pad>, </s> and <unk> stand there as added tokens.
std::unique_ptr<WordModel> make_byte_model(const std::vector<std::string>& first_three);

}  // namespace quintet

#endif  // QUINTET_TOKENIZER_BYTE_MODEL_H_
