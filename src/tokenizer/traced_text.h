// UTF-8 text that remembers which bytes of the original text it came from, where that is asked for.
// Every step from raw text to words takes one and returns another.
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

// How long a text may become, and who is to blame where it becomes longer.
struct TextBudget {
  size_t max_bytes = 0;
  std::string_view component;
};

enum class Tracing { kBytes, kBeginning };

// Traced by kBytes, a byte of text takes 9 bytes of memory; by kBeginning one byte, and all that is
// known is which bytes came from the original's first.
struct TracedText {
  std::string text;          // valid UTF-8
  std::vector<Span> origin;  // kBytes: one per byte of `text`, never decreasing; else empty
  Tracing tracing = Tracing::kBytes;
  size_t n_beginning = 0;  // so many leading bytes came from where the original begins
  const TextBudget* budget = nullptr;

  TracedText like() const;  // an empty one, traced and bounded as this one
  void reserve(size_t bytes);
  void clear();
  // Throws Error(kFile) beyond the budget.
  void append(std::string_view bytes, Span from);
  void append(const TracedText& other, size_t begin, size_t end);  // bytes [begin, end) of `other`
  TracedText slice(size_t begin, size_t end) const;
  // What bytes [begin, end), at least one, came from. By kBeginning a span is 0 ... 1 for the
  // original's beginning and 1 ... 1 for all else.
  Span origin_of(size_t begin, size_t end) const {
    if (tracing == Tracing::kBeginning) return {begin < n_beginning ? 0U : 1U, 1};
    return {origin[begin].begin, origin[end - 1].end};
  }

 private:
  void check_budget(size_t more) const;
};

// Reads `raw` as UTF-8; each maximal run of bytes that is not becomes one U+FFFD, as in the Unicode
// standard's recommendation. Throws Error(kRecord) for texts of 4 GiB and more.
TracedText trace_utf8(std::string_view raw, Tracing tracing = Tracing::kBytes,
                      const TextBudget* budget = nullptr);

// What `bytes`, at least one, begin with: a well-formed code point (valid), or the longest prefix
// that could have begun one.
struct Utf8Unit {
  size_t size = 1;
  bool is_valid = false;
  bool is_cut = false;  // not valid only because the bytes end
};
Utf8Unit utf8_unit(std::string_view bytes);
inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

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
