#include "tokenizer/unicode_form.h"

#include <utf8proc.h>

#include <algorithm>
#include <vector>

#include "core/error.h"

namespace quintet {
namespace {

int combining_class(utf8proc_int32_t c) { return utf8proc_get_property(c)->combining_class; }

// Canonical ordering. utf8proc's own is an insertion sort, quadratic in a run's length.
void sort_marks(std::vector<utf8proc_int32_t>& text) {
  for (auto begin = text.begin(); begin != text.end();) {
    if (combining_class(*begin) == 0) {
      ++begin;
      continue;
    }
    const auto end =
        std::find_if(begin, text.end(), [](auto c) { return combining_class(c) == 0; });
    std::stable_sort(begin, end,
                     [](auto a, auto b) { return combining_class(a) < combining_class(b); });
    begin = end;
  }
}

void append_form(const TracedText& in, size_t begin, size_t end, UnicodeForm form,
                 TracedText& out) {
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE |
                                                      (form.compatibility ? UTF8PROC_COMPAT : 0));
  std::vector<utf8proc_int32_t> decomposed;
  for (size_t at = begin; at < end;) {
    const CodePoint c = code_point_at(in.text, at);
    utf8proc_int32_t parts[32];  // the longest decomposition has 18
    int last_class = 0;
    const auto n = utf8proc_decompose_char(c.value, parts, 32, options, &last_class);
    if (n >= 0 && n <= 32) {
      decomposed.insert(decomposed.end(), parts, parts + n);
    } else {
      decomposed.push_back(c.value);  // not assigned: stands for itself
    }
    at += c.size;
  }
  sort_marks(decomposed);
  if (form.composed) {
    const auto compose = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    const auto n = utf8proc_normalize_utf32(
        decomposed.data(), static_cast<utf8proc_ssize_t>(decomposed.size()), compose);
    decomposed.resize(static_cast<size_t>(n));
  }
  const Span from = in.origin_of(begin, end);
  for (const utf8proc_int32_t c : decomposed) {
    out.append(to_utf8(c), from);
  }
}

}  // namespace

std::optional<UnicodeForm> parse_unicode_form(std::string_view name) {
  if (name == "NFC") return UnicodeForm{.compatibility = false, .composed = true};
  if (name == "NFD") return UnicodeForm{.compatibility = false, .composed = false};
  if (name == "NFKC") return UnicodeForm{.compatibility = true, .composed = true};
  if (name == "NFKD") return UnicodeForm{.compatibility = true, .composed = false};
  return std::nullopt;
}

TracedText to_unicode_form(const TracedText& in, UnicodeForm form) {
  TracedText out = in.like();
  out.reserve(in.text.size());
  const auto is_ascii = [&](size_t at) { return static_cast<unsigned char>(in.text[at]) < 0x80; };
  for (size_t at = 0; at < in.text.size();) {
    // An ASCII character never joins what stands before it, so runs are independent.
    size_t end = at + 1;
    while (end < in.text.size() && !is_ascii(end)) {
      ++end;
    }
    if (is_ascii(at) && end == at + 1) {
      out.append(in, at, end);
    } else {
      append_form(in, at, end, form, out);
    }
    at = end;
  }
  return out;
}

}  // namespace quintet
