// The word-level model: each word is looked up as a whole.
#ifndef QUINTET_TOKENIZER_WORD_LEVEL_H_
#define QUINTET_TOKENIZER_WORD_LEVEL_H_

#include "tokenizer/word_model.h"

namespace quintet {

// {"type": "WordLevel", "vocab": {word: id, ...}, "unk_token": word}
std::unique_ptr<WordModel> read_word_level(const nlohmann::json& spec, const std::string& where);

}  // namespace quintet

#endif  // QUINTET_TOKENIZER_WORD_LEVEL_H_
