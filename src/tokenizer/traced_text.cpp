#include "tokenizer/traced_text.h"

#include <utf8proc.h>

#include <algorithm>
#include <limits>

#include "core/error.h"

namespace quintet {
Utf8Unit utf8_unit(std::string_view bytes) {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned char lead = at(0);
  if (lead < 0x80) {
    return {1, true, false};
  }
  if (lead < 0xC2 || lead > 0xF4) {
    return {1, false, false};
  }
  const size_t need = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  // The second byte's range excludes overlong forms, surrogates and values above U+10FFFF.
  unsigned char low = 0x80;
  unsigned char high = 0xBF;
  if (lead == 0xE0) low = 0xA0;
  if (lead == 0xED) high = 0x9F;
  if (lead == 0xF0) low = 0x90;
  if (lead == 0xF4) high = 0x8F;
  for (size_t i = 1; i < need; ++i) {
    if (i == bytes.size()) {
      return {i, false, true};
    }
    if (at(i) < low || at(i) > high) {
      return {i, false, false};
    }
    low = 0x80;
    high = 0xBF;
  }
  return {need, true, false};
}

TracedText TracedText::like() const {
  TracedText empty;
  empty.tracing = tracing;
  empty.budget = budget;
  return empty;
}

void TracedText::reserve(size_t bytes) {
  text.reserve(bytes);
  if (tracing == Tracing::kBytes) origin.reserve(bytes);
}

void TracedText::clear() {
  text.clear();
  origin.clear();
  n_beginning = 0;
}

void TracedText::check_budget(size_t more) const {
  if (budget != nullptr && text.size() + more > budget->max_bytes) {
    fail(ErrorKind::kFile,
         "{}: makes more than {} bytes of a text, more than any known tokenizer; is the file meant "
         "for this?",
         budget->component, budget->max_bytes);
  }
}

void TracedText::append(std::string_view bytes, Span from) {
  check_budget(bytes.size());
  text.append(bytes);
  if (from.begin == 0) n_beginning = text.size();
  if (tracing == Tracing::kBytes) origin.resize(text.size(), from);
}

void TracedText::append(const TracedText& other, size_t begin, size_t end) {
  check_budget(end - begin);
  const size_t first = std::min(end, other.n_beginning);
  if (begin < first) n_beginning = text.size() + (first - begin);
  text.append(other.text, begin, end - begin);
  if (tracing == Tracing::kBytes) {
    origin.insert(origin.end(), other.origin.begin() + static_cast<ptrdiff_t>(begin),
                  other.origin.begin() + static_cast<ptrdiff_t>(end));
  }
}

TracedText TracedText::slice(size_t begin, size_t end) const {
  TracedText part = like();
  part.reserve(end - begin);
  part.append(*this, begin, end);
  return part;
}

TracedText trace_utf8(std::string_view raw, Tracing tracing, const TextBudget* budget) {
  if (raw.size() > std::numeric_limits<uint32_t>::max()) {
    fail(ErrorKind::kRecord, "a text of {} bytes is longer than the 4 GiB that one record may have",
         raw.size());
  }
  TracedText traced;
  traced.tracing = tracing;
  traced.budget = budget;
  traced.reserve(raw.size());
  for (size_t at = 0; at < raw.size();) {
    const Utf8Unit next = utf8_unit(raw.substr(at, 4));
    const Span from{static_cast<uint32_t>(at), static_cast<uint32_t>(at + next.size)};
    traced.append(next.is_valid ? raw.substr(at, next.size) : kReplacementCharacter, from);
    at += next.size;
  }
  return traced;
}

CodePoint code_point_at(std::string_view text, size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  if (lead < 0x80) {
    return {lead, 1};
  }
  const auto more = [&](size_t i) { return static_cast<unsigned char>(text[at + i]) & 0x3F; };
  if (lead < 0xE0) {
    return {((lead & 0x1F) << 6) | more(1), 2};
  }
  if (lead < 0xF0) {
    return {((lead & 0x0F) << 12) | (more(1) << 6) | more(2), 3};
  }
  return {((lead & 0x07) << 18) | (more(1) << 12) | (more(2) << 6) | more(3), 4};
}

std::string to_utf8(int32_t code_point) {
  utf8proc_uint8_t bytes[4];
  const auto size = utf8proc_encode_char(code_point, bytes);
  return {reinterpret_cast<const char*>(bytes), static_cast<size_t>(size)};
}

bool is_valid_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const Utf8Unit next = utf8_unit(text.substr(at, 4));
    if (!next.is_valid) {
      return false;
    }
    at += next.size;
  }
  return true;
}

size_t previous_boundary(std::string_view text, size_t end) {
  size_t at = end - 1;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) {
    --at;
  }
  return at;
}

bool is_white_space(int32_t c) {
  if (c < 0x80) {
    return c == ' ' || (c >= '\t' && c <= '\r');
  }
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_word_character(int32_t c) {
  switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      // Join_Control, and the circled and squared letters, which are Alphabetic but not letters.
      return c == 0x200C || c == 0x200D || (c >= 0x24B6 && c <= 0x24E9) ||
             (c >= 0x1F130 && c <= 0x1F149) || (c >= 0x1F150 && c <= 0x1F169) ||
             (c >= 0x1F170 && c <= 0x1F189);
  }
}

}  // namespace quintet
