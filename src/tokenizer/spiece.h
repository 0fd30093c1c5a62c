// Reads what a tokenizer needs from a spiece.model: SentencePiece's protocol buffer of pieces,
// scores and the character map.
#ifndef QUINTET_TOKENIZER_SPIECE_H_
#define QUINTET_TOKENIZER_SPIECE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace quintet {

struct Spiece {
  enum class Kind { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };
  struct Piece {
    std::string text;
    float score = 0;
    Kind kind = Kind::kNormal;
  };
  std::vector<Piece> pieces;
  std::string charsmap;  // as Charsmap reads it; "" where there is none
};

// `bytes` is the file's contents, `where` its name for messages. Throws Error(kFile), also for
// models other than unigram.
Spiece parse_spiece(std::string_view bytes, const std::string& where);

}  // namespace quintet

#endif  // QUINTET_TOKENIZER_SPIECE_H_
