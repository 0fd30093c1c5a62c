// The classes of characters that byte-level tokenizers cut words by.
#ifndef QUINTET_TOKENIZER_UNICODE_CLASS_H_
#define QUINTET_TOKENIZER_UNICODE_CLASS_H_

#include <cstdint>

namespace quintet {

bool is_letter(int32_t code_point);  // \p{L}
bool is_number(int32_t code_point);  // \p{N}

}  // namespace quintet

#endif  // QUINTET_TOKENIZER_UNICODE_CLASS_H_
