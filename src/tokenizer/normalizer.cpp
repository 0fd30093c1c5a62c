#include "tokenizer/normalizer.h"

#include <utf8proc.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "tokenizer/base64.h"
#include "tokenizer/charsmap.h"
#include "tokenizer/json_fields.h"
#include "tokenizer/pattern.h"
#include "tokenizer/unicode_form.h"

namespace quintet {
namespace {

class CharsmapNormalizer : public Normalizer {
 public:
  explicit CharsmapNormalizer(Charsmap map) : map_(std::move(map)) {}
  TracedText apply(TracedText text) const override { return map_.apply(text); }

 private:
  Charsmap map_;
};

class Strip : public Normalizer {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}
  TracedText apply(TracedText in) const override {
    const std::string_view text = in.text;
    size_t begin = 0;
    size_t end = text.size();
    while (left_ && begin < end && is_white_space(code_point_at(text, begin).value)) {
      begin += code_point_at(text, begin).size;
    }
    while (right_ && begin < end) {
      const size_t last = previous_boundary(text, end);
      if (!is_white_space(code_point_at(text, last).value)) break;
      end = last;
    }
    return begin == 0 && end == text.size() ? std::move(in) : in.slice(begin, end);
  }

 private:
  bool left_;
  bool right_;
};

class Replace : public Normalizer {
 public:
  Replace(Pattern pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}
  TracedText apply(TracedText in) const override {
    TracedText out = in.like();
    size_t at = 0;
    pattern_.for_each_match(in.text, [&](Pattern::Match match) {
      if (at == 0) out.reserve(in.text.size());
      out.append(in, at, match.begin);
      out.append(content_, in.origin_of(match.begin, match.end));
      at = match.end;
    });
    if (at == 0) {
      return in;
    }
    out.append(in, at, in.text.size());
    return out;
  }

 private:
  Pattern pattern_;
  std::string content_;
};

class Prepend : public Normalizer {
 public:
  explicit Prepend(std::string content) : content_(std::move(content)) {}
  TracedText apply(TracedText in) const override {
    if (in.text.empty()) {
      return in;
    }
    TracedText out = in.like();
    out.reserve(in.text.size() + content_.size());
    const uint32_t at = in.origin_of(0, 1).begin;
    out.append(content_, {at, at});
    out.append(in, 0, in.text.size());
    return out;
  }

 private:
  std::string content_;
};

// Maps each character to a string of its own.
template <typename Map>
TracedText map_characters(const TracedText& in, Map map) {
  TracedText out = in.like();
  out.reserve(in.text.size());
  for (size_t at = 0; at < in.text.size();) {
    const CodePoint c = code_point_at(in.text, at);
    map(c.value, in.origin_of(at, at + c.size), out);
    at += c.size;
  }
  return out;
}

class Lowercase : public Normalizer {
 public:
  TracedText apply(TracedText in) const override {
    return map_characters(in, [](int32_t c, Span from, TracedText& out) {
      // The one character whose lower case is two.
      out.append(c == 0x130 ? std::string("i\xCC\x87") : to_utf8(utf8proc_tolower(c)), from);
    });
  }
};

// The clean-up of Google's neural machine translation: controls go, all kinds of blanks become ' '.
class Nmt : public Normalizer {
 public:
  TracedText apply(TracedText in) const override {
    return map_characters(in, [](int32_t c, Span from, TracedText& out) {
      if (!is_dropped(c)) {
        out.append(is_blank(c) ? std::string(" ") : to_utf8(c), from);
      }
    });
  }

 private:
  static bool is_dropped(int32_t c) {
    return (c >= 0x01 && c <= 0x08) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F ||
           c == 0x8F || c == 0x9F;
  }
  static bool is_blank(int32_t c) {
    return c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 ||
           (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
           c == 0xFEFF || c == 0xFFFD;
  }
};

class UnicodeNormalizer : public Normalizer {
 public:
  explicit UnicodeNormalizer(UnicodeForm form) : form_(form) {}
  TracedText apply(TracedText in) const override { return to_unicode_form(in, form_); }

 private:
  UnicodeForm form_;
};

class Sequence : public Normalizer {
 public:
  explicit Sequence(std::vector<std::unique_ptr<Normalizer>> steps) : steps_(std::move(steps)) {}
  TracedText apply(TracedText text) const override {
    for (const auto& step : steps_) {
      text = step->apply(std::move(text));
    }
    return text;
  }

 private:
  std::vector<std::unique_ptr<Normalizer>> steps_;
};

std::unique_ptr<Normalizer> make_sequence(const nlohmann::json& spec, const std::string& where) {
  const nlohmann::json& list = member(spec, "normalizers");
  if (!list.is_array()) {
    fail(ErrorKind::kFile, "{}: 'normalizers' must be a list", where);
  }
  std::vector<std::unique_ptr<Normalizer>> steps;
  for (const nlohmann::json& step : list) {
    if (auto made = make_normalizer(step, where)) {
      steps.push_back(std::move(made));
    }
  }
  return std::make_unique<Sequence>(std::move(steps));
}

}  // namespace

std::unique_ptr<Normalizer> make_charsmap_normalizer(std::string_view blob,
                                                     const std::string& where) {
  return blob.empty() ? nullptr : std::make_unique<CharsmapNormalizer>(Charsmap(blob, where));
}

std::unique_ptr<Normalizer> make_normalizer(const nlohmann::json& spec, const std::string& where) {
  if (spec.is_null()) {
    return nullptr;
  }
  const std::string type = require_string(spec, "type", where);
  const std::string here = component(where, type);
  if (type == "Sequence") {
    return make_sequence(spec, here);
  }
  if (type == "Precompiled") {
    return make_charsmap_normalizer(
        decode_base64(require_string(spec, "precompiled_charsmap", here), here), here);
  }
  if (type == "Strip") {
    return std::make_unique<Strip>(bool_or(spec, "strip_left", true, here),
                                   bool_or(spec, "strip_right", true, here));
  }
  if (type == "Replace") {
    return std::make_unique<Replace>(Pattern(member(spec, "pattern"), here),
                                     require_string(spec, "content", here));
  }
  if (type == "Prepend") {
    return std::make_unique<Prepend>(require_string(spec, "prepend", here));
  }
  if (type == "Lowercase") {
    return std::make_unique<Lowercase>();
  }
  if (type == "Nmt") {
    return std::make_unique<Nmt>();
  }
  if (const auto form = parse_unicode_form(type)) {
    return std::make_unique<UnicodeNormalizer>(*form);
  }
  fail(ErrorKind::kFile,
       "{}: '{}' is not supported; this program knows Sequence, Precompiled, Strip, Replace, "
       "Prepend, Lowercase, Nmt, NFC, NFD, NFKC, NFKD",
       where, type);
}

}  // namespace quintet
