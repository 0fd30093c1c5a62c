#include "tokenizer/byte_level.h"

#include <array>

#include "tokenizer/unicode_class.h"

namespace quintet {
namespace {

constexpr int32_t kFirstMoved = 0x100;  // where the bytes that are not printable have gone

bool is_printable(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct Alphabet {
  std::array<std::string, 256> characters;
  std::array<int, kFirstMoved + 256> bytes{};  // by code point; -1: none

  Alphabet() {
    bytes.fill(-1);
    int32_t moved = kFirstMoved;
    for (int byte = 0; byte < 256; ++byte) {
      const int32_t code_point = is_printable(byte) ? byte : moved++;
      characters[byte] = to_utf8(code_point);
      bytes[code_point] = byte;
    }
  }
};

const Alphabet& alphabet() {
  static const Alphabet alphabet;
  return alphabet;
}

enum class Kind { kSpace, kLetter, kNumber, kOther };

Kind kind_of(int32_t c) {
  if (is_letter(c)) return Kind::kLetter;
  if (is_number(c)) return Kind::kNumber;
  return is_white_space(c) ? Kind::kSpace : Kind::kOther;
}

// Where the characters of `kind` from `at` on end.
size_t end_of_run(std::string_view text, size_t at, Kind kind) {
  while (at < text.size()) {
    const CodePoint c = code_point_at(text, at);
    if (kind_of(c.value) != kind) break;
    at += c.size;
  }
  return at;
}

// The length of the English ending that `text` begins with, 0 for none.
size_t contraction_size(std::string_view text) {
  for (const std::string_view ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
    if (text.starts_with(ending)) return ending.size();
  }
  return 0;
}

// Where the word at `at` ends, as
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// matches: white space leaves its last character to the word behind it.
size_t end_of_word(std::string_view text, size_t at) {
  if (text[at] == '\'') {
    if (const size_t size = contraction_size(text.substr(at)); size > 0) return at + size;
  }
  const size_t behind_space = at + (text[at] == ' ' ? 1 : 0);
  if (behind_space < text.size()) {
    const Kind kind = kind_of(code_point_at(text, behind_space).value);
    if (kind != Kind::kSpace) return end_of_run(text, behind_space, kind);
  }
  const size_t end = end_of_run(text, at, Kind::kSpace);
  const size_t last = previous_boundary(text, end);
  return end == text.size() || last == at ? end : last;
}

class ByteLevel : public PreTokenizer {
 public:
  ByteLevel(bool add_prefix_space, bool cut_words)
      : add_prefix_space_(add_prefix_space), cut_words_(cut_words) {}

  void cut(const TracedText& in, WordRange range, const WordSink& sink) const override {
    if (range.begin == range.end) return;
    if (!add_prefix_space_ || in.text[range.begin] == ' ') {
      cut_text(in, range, sink);
      return;
    }
    TracedText text = in.like();
    text.reserve(1 + range.end - range.begin);
    const size_t size = code_point_at(in.text, range.begin).size;
    text.append(" ", in.origin_of(range.begin, range.begin + size));
    text.append(in, range.begin, range.end);
    cut_text(text, {0, text.text.size()}, sink);
  }

 private:
  void cut_text(const TracedText& in, WordRange range, const WordSink& sink) const {
    const std::string_view text = std::string_view(in.text).substr(0, range.end);
    TracedText word = in.like();
    for (size_t at = range.begin; at < range.end;) {
      const size_t end = cut_words_ ? end_of_word(text, at) : range.end;
      word.clear();
      for (; at < end; ++at) {
        word.append(byte_level_character(static_cast<unsigned char>(text[at])),
                    in.origin_of(at, at + 1));
      }
      sink(word, {0, word.text.size()});
    }
  }

  bool add_prefix_space_;
  bool cut_words_;
};

}  // namespace

std::string_view byte_level_character(unsigned char byte) { return alphabet().characters[byte]; }

std::optional<std::string> byte_level_bytes(std::string_view piece) {
  const auto& bytes = alphabet().bytes;
  std::string result;
  for (size_t at = 0; at < piece.size();) {
    const CodePoint c = code_point_at(piece, at);
    if (static_cast<size_t>(c.value) >= bytes.size() || bytes[c.value] < 0) return std::nullopt;
    result += static_cast<char>(bytes[c.value]);
    at += c.size;
  }
  return result;
}

std::unique_ptr<PreTokenizer> make_byte_level(bool add_prefix_space, bool cut_words) {
  return std::make_unique<ByteLevel>(add_prefix_space, cut_words);
}

}  // namespace quintet
