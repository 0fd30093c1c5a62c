// SentencePiece's precompiled character map: a double-array trie of keys and a pool of
// replacements, applied grapheme by grapheme as the Hugging Face tokenizers do it.
#ifndef QUINTET_TOKENIZER_CHARSMAP_H_
#define QUINTET_TOKENIZER_CHARSMAP_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/traced_text.h"

namespace quintet {

class Charsmap {
 public:
  // `blob`: little-endian u32 size of the trie in bytes, the trie's u32 units, then replacements
  // that end with NUL each. Throws Error(kFile) that begins with `where`. The trie may hold
  // anything: walks are checked, and a value that points nowhere is as no entry.
  Charsmap(std::string_view blob, const std::string& where);

  // A grapheme of fewer than 6 bytes is looked up as a whole (its shortest prefix that is a key
  // counts), any other character by character.
  TracedText apply(const TracedText& in) const;

  // The replacement for the shortest key that `chunk` begins with.
  std::optional<std::string_view> find(std::string_view chunk) const;

 private:
  void append_mapped(const TracedText& in, size_t begin, size_t end, TracedText& out) const;

  std::vector<uint32_t> units_;
  std::string pool_;
  std::array<bool, 128> ascii_is_plain_{};  // not a key, nor CR: stands for itself
};

}  // namespace quintet

#endif  // QUINTET_TOKENIZER_CHARSMAP_H_
