// Base64 as JSON files carry it: the standard alphabet, padded.
#ifndef QUINTET_TOKENIZER_BASE64_H_
#define QUINTET_TOKENIZER_BASE64_H_

#include <string>
#include <string_view>

namespace quintet {

// Throws Error(kFile) that begins with `where` for anything but whole padded groups.
std::string decode_base64(std::string_view text, const std::string& where);

}  // namespace quintet

#endif  // QUINTET_TOKENIZER_BASE64_H_
