// MD5 of sequences: the keys of the bio-embeddings and tmbed layouts, and how equal ones are found.
#include <md5.h>

#include "output/formats.h"

namespace quintet {

SequenceDigest digest_of(std::string_view sequence) {
  MD5_CTX context;
  MD5Init(&context);
  MD5Update(&context, reinterpret_cast<const uint8_t*>(sequence.data()), sequence.size());
  SequenceDigest digest{};
  MD5Final(digest.data(), &context);
  return digest;
}

std::string hex_of(const SequenceDigest& digest) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  for (const uint8_t byte : digest) {
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

std::string sequence_of_ids(const std::vector<int64_t>& input_ids,
                            const std::vector<uint8_t>& attention_mask) {
  std::string text;
  for (size_t i = 0; i < input_ids.size(); ++i) {
    if (i > 0) text += ' ';
    text += std::to_string(input_ids[i]);
    if (!attention_mask.empty() && attention_mask[i] == 0) text += '-';  // masked
  }
  return text;
}

}  // namespace quintet
