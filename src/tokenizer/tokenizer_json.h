// Reads tokenizer.json, the Hugging Face description of a whole tokenizer.
#ifndef QUINTET_TOKENIZER_TOKENIZER_JSON_H_
#define QUINTET_TOKENIZER_TOKENIZER_JSON_H_

#include <memory>
#include <string>
#include <string_view>

#include "tokenizer/pipeline_tokenizer.h"
#include "tokenizer/tokenizer.h"

namespace quintet {

// `text` is the file's contents, `where` its name for messages. Its "truncation" and "padding" are
// not used: texts are cut and padded only by those who ask for it. Throws Error(kFile).
std::unique_ptr<Tokenizer> parse_tokenizer_json(std::string_view text, const std::string& where,
                                                CleanUp clean_up = {});

}  // namespace quintet

#endif  // QUINTET_TOKENIZER_TOKENIZER_JSON_H_
