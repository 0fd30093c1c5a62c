#include "tokenizer/charsmap.h"

#include <utf8proc.h>

#include "core/error.h"

namespace quintet {
namespace {

// Fields of a unit of the double array (the format of darts-clone).
bool has_leaf(uint32_t unit) { return ((unit >> 8) & 1U) != 0; }
uint32_t value(uint32_t unit) { return unit & 0x7FFFFFFFU; }
uint32_t label(uint32_t unit) { return unit & 0x800000FFU; }
uint32_t offset(uint32_t unit) { return (unit >> 10) << ((unit & (1U << 9)) >> 6); }

uint32_t read_u32(std::string_view bytes, size_t at) {
  uint32_t result = 0;
  for (size_t i = 0; i < 4; ++i) {
    result |= static_cast<uint32_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  }
  return result;
}

bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

// The combining marks of Unicode 15.1 ... 17 below U+10000 that utf8proc 2.8 (Unicode 15) does not
// know; the reference does. Larger ones never are in a grapheme of fewer than 6 bytes that matters.
bool is_recent_mark(int32_t c) {
  return c == 0x897 || (c >= 0x1ACF && c <= 0x1ADD) || (c >= 0x1AE0 && c <= 0x1AEB);
}

CodePoint known_code_point_at(std::string_view text, size_t at) {
  constexpr int32_t kAcute = 0x301;  // breaks as every mark does
  CodePoint c = code_point_at(text, at);
  if (is_recent_mark(c.value)) {
    c.value = kAcute;
  }
  return c;
}

// The end of the grapheme cluster that begins at `begin`.
size_t grapheme_end(std::string_view text, size_t begin) {
  CodePoint current = known_code_point_at(text, begin);
  size_t end = begin + current.size;
  utf8proc_int32_t state = 0;
  while (end < text.size()) {
    const CodePoint next = known_code_point_at(text, end);
    if (utf8proc_grapheme_break_stateful(current.value, next.value, &state)) {
      break;
    }
    current = next;
    end += next.size;
  }
  return end;
}

}  // namespace

Charsmap::Charsmap(std::string_view blob, const std::string& where) {
  if (blob.size() < 4) {
    fail(ErrorKind::kFile, "{}: the character map has {} bytes, at least 4 expected", where,
         blob.size());
  }
  const size_t trie_bytes = read_u32(blob, 0);
  if (trie_bytes > blob.size() - 4) {
    fail(ErrorKind::kFile, "{}: the character map's trie of {} bytes exceeds its {} bytes", where,
         trie_bytes, blob.size() - 4);
  }
  const size_t n_units = trie_bytes / 4;
  units_.reserve(n_units);
  for (size_t i = 0; i < n_units; ++i) {
    units_.push_back(read_u32(blob, 4 + 4 * i));
  }
  pool_ = blob.substr(4 + 4 * n_units);
  if (!is_valid_utf8(pool_)) {
    fail(ErrorKind::kFile, "{}: the character map's replacements are not UTF-8", where);
  }
  for (size_t c = 0; c < ascii_is_plain_.size(); ++c) {
    const char byte = static_cast<char>(c);
    ascii_is_plain_[c] = byte != '\r' && !find({&byte, 1});
  }
}

std::optional<std::string_view> Charsmap::find(std::string_view chunk) const {
  if (units_.empty()) {
    return std::nullopt;
  }
  size_t node = offset(units_[0]);
  for (const char byte : chunk) {
    const auto c = static_cast<unsigned char>(byte);
    node ^= c;
    if (c == 0 || node >= units_.size() || label(units_[node]) != c) {
      return std::nullopt;
    }
    const uint32_t unit = units_[node];
    node ^= offset(unit);
    if (!has_leaf(unit)) {
      continue;
    }
    const size_t at = node < units_.size() ? value(units_[node]) : pool_.size() + 1;
    if (at > pool_.size() || (at < pool_.size() && is_continuation(pool_[at]))) {
      return std::nullopt;
    }
    const std::string_view rest = std::string_view(pool_).substr(at);
    return rest.substr(0, rest.find('\0'));
  }
  return std::nullopt;
}

TracedText Charsmap::apply(const TracedText& in) const {
  TracedText out = in.like();
  out.reserve(in.text.size());
  const auto is_ascii = [&](size_t at) { return static_cast<unsigned char>(in.text[at]) < 0x80; };
  for (size_t at = 0; at < in.text.size();) {
    // Between two ASCII characters there is a boundary, but for CR LF.
    size_t plain = at;
    while (plain < in.text.size() && is_ascii(plain) &&
           ascii_is_plain_[static_cast<unsigned char>(in.text[plain])] &&
           (plain + 1 == in.text.size() || is_ascii(plain + 1))) {
      ++plain;
    }
    out.append(in, at, plain);
    if (plain == in.text.size()) {
      break;
    }
    at = grapheme_end(in.text, plain);
    append_mapped(in, plain, at, out);
  }
  return out;
}

void Charsmap::append_mapped(const TracedText& in, size_t begin, size_t end,
                             TracedText& out) const {
  const std::string_view grapheme = std::string_view(in.text).substr(begin, end - begin);
  if (grapheme.size() < 6) {
    if (const auto mapped = find(grapheme)) {
      out.append(*mapped, in.origin_of(begin, end));
      return;
    }
  }
  for (size_t at = begin; at < end;) {
    const size_t next = at + code_point_at(in.text, at).size;
    if (const auto mapped = find(std::string_view(in.text).substr(at, next - at))) {
      out.append(*mapped, in.origin_of(at, next));
    } else {
      out.append(in, at, next);
    }
    at = next;
  }
}

}  // namespace quintet
