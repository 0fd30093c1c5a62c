// UTF-8 text that remembers, byte by byte, which bytes of the original text it came from. Every
// step from raw text to words takes one and returns another.
#ifndef QUINTET_TOKENIZER_TRACED_TEXT_H_
#define QUINTET_TOKENIZER_TRACED_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace quintet {

struct Span {  // bytes [begin, end)
  uint32_t begin = 0;
  uint32_t end = 0;
};

struct TracedText {
  std::string text;          // valid UTF-8
  std::vector<Span> origin;  // one per byte of `text`; never decreasing

  void reserve(size_t bytes);
  void append(std::string_view bytes, Span from);
  void append(const TracedText& other, size_t begin, size_t end);  // bytes [begin, end) of `other`
  TracedText slice(size_t begin, size_t end) const;
  // What bytes [begin, end), at least one, came from.
  Span origin_of(size_t begin, size_t end) const {
    return {origin[begin].begin, origin[end - 1].end};
  }
};

// Reads `raw` as UTF-8; each maximal run of bytes that is not becomes one U+FFFD, as in the Unicode
// standard's recommendation. Throws Error(kRecord) for texts of 4 GiB and more.
TracedText trace_utf8(std::string_view raw);

// The code point that starts at `at` in valid UTF-8, and its length in bytes.
struct CodePoint {
  int32_t value = 0;
  uint32_t size = 1;
};
CodePoint code_point_at(std::string_view text, size_t at);
std::string to_utf8(int32_t code_point);
bool is_valid_utf8(std::string_view text);

// Where the code point that ends at `end` (> 0) begins.
size_t previous_boundary(std::string_view text, size_t end);

bool is_white_space(int32_t code_point);     // Unicode's White_Space
bool is_word_character(int32_t code_point);  // \w: letters, marks, decimal digits, connectors

}  // namespace quintet

#endif  // QUINTET_TOKENIZER_TRACED_TEXT_H_
