#include "tokenizer/pre_tokenizer.h"

#include <algorithm>
#include <utility>

#include "tokenizer/json_fields.h"
#include "tokenizer/pattern.h"

namespace quintet {
namespace {

constexpr const char* kMark = "\xE2\x96\x81";  // U+2581, "▁"

class WhitespaceSplit : public PreTokenizer {
 public:
  Words apply(Words in) const override {
    const std::vector<Words::Range> ranges = std::exchange(in.ranges, {});
    for (const Words::Range& range : ranges) {
      size_t word = range.begin;
      for (size_t at = range.begin; at < range.end;) {
        const CodePoint c = code_point_at(in.text.text, at);
        if (is_white_space(c.value)) {
          in.add(word, at);
          word = at + c.size;
        }
        at += c.size;
      }
      in.add(word, range.end);
    }
    return in;
  }
};

// \w+|[^\w\s]+
class Whitespace : public PreTokenizer {
 public:
  Words apply(Words in) const override {
    enum class Kind { kSpace, kWord, kOther };
    const auto kind_of = [](int32_t c) {
      return is_word_character(c) ? Kind::kWord : is_white_space(c) ? Kind::kSpace : Kind::kOther;
    };
    const std::vector<Words::Range> ranges = std::exchange(in.ranges, {});
    for (const Words::Range& range : ranges) {
      size_t word = range.begin;
      Kind kind = Kind::kSpace;
      for (size_t at = range.begin; at < range.end;) {
        const CodePoint c = code_point_at(in.text.text, at);
        const Kind next = kind_of(c.value);
        if (next != kind) {
          if (kind != Kind::kSpace) in.add(word, at);
          word = at;
          kind = next;
        }
        at += c.size;
      }
      if (kind != Kind::kSpace) in.add(word, range.end);
    }
    return in;
  }
};

// Spaces become the mark, a mark may be put in front, and a new word begins at each mark.
class Metaspace : public PreTokenizer {
 public:
  Metaspace(std::string mark, PrependScheme scheme, bool split)
      : mark_(std::move(mark)), scheme_(scheme), split_(split) {}

  Words apply(Words in) const override {
    Words out;
    out.text.reserve(in.text.text.size() + mark_.size() * in.ranges.size());
    for (const Words::Range& range : in.ranges) {
      append(in, range, out);
    }
    return out;
  }

 private:
  void append(const Words& in, const Words::Range& range, Words& out) const {
    const std::string& text = in.text.text;
    const auto is_mark = [&](size_t at) { return text.compare(at, mark_.size(), mark_) == 0; };
    size_t word = out.text.text.size();
    const bool marked = text[range.begin] == ' ' || is_mark(range.begin);
    if (!marked && (scheme_ == PrependScheme::kAlways ||
                    (scheme_ == PrependScheme::kFirst && range.is_first))) {
      const uint32_t from = in.text.origin[range.begin].begin;
      out.text.append(mark_, {from, from});
    }
    for (size_t at = range.begin; at < range.end;) {
      const size_t size = code_point_at(text, at).size;
      const bool is_space = text[at] == ' ';
      if (split_ && (is_space || is_mark(at))) {
        out.add(word, out.text.text.size());
        word = out.text.text.size();
      }
      if (is_space) {
        out.text.append(mark_, in.text.origin_of(at, at + 1));
      } else {
        out.text.append(in.text, at, at + size);
      }
      at += size;
    }
    out.add(word, out.text.text.size());
  }

  std::string mark_;
  PrependScheme scheme_;
  bool split_;
};

class Split : public PreTokenizer {
 public:
  enum class Behavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

  Split(Pattern pattern, Behavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}

  Words apply(Words in) const override {
    const std::vector<Words::Range> ranges = std::exchange(in.ranges, {});
    for (const Words::Range& range : ranges) {
      const std::string_view text =
          std::string_view(in.text.text).substr(range.begin, range.end - range.begin);
      add_words(parts_of(text), range.begin, in);
    }
    return in;
  }

 private:
  struct Part {
    size_t begin = 0;
    size_t end = 0;
    bool is_match = false;
  };

  std::vector<Part> parts_of(std::string_view text) const {
    std::vector<Part> parts;
    size_t at = 0;
    for (const Pattern::Match& match : pattern_.find_all(text)) {
      if (at < match.begin) parts.push_back({at, match.begin, invert_});
      parts.push_back({match.begin, match.end, !invert_});
      at = match.end;
    }
    if (at < text.size()) parts.push_back({at, text.size(), invert_});
    return parts;
  }

  void add_words(const std::vector<Part>& parts, size_t base, Words& words) const {
    for (size_t i = 0; i < parts.size();) {
      size_t last = i;
      if (behavior_ == Behavior::kContiguous) {
        while (last + 1 < parts.size() && parts[last + 1].is_match == parts[i].is_match) ++last;
      } else if (behavior_ == Behavior::kMergedWithPrevious && !parts[i].is_match &&
                 i + 1 < parts.size() && parts[i + 1].is_match) {
        ++last;
      } else if (behavior_ == Behavior::kMergedWithNext && parts[i].is_match &&
                 i + 1 < parts.size() && !parts[i + 1].is_match) {
        ++last;
      }
      if (behavior_ != Behavior::kRemoved || !parts[i].is_match) {
        words.add(base + parts[i].begin, base + parts[last].end);
      }
      i = last + 1;
    }
  }

  Pattern pattern_;
  Behavior behavior_;
  bool invert_;
};

class Sequence : public PreTokenizer {
 public:
  explicit Sequence(std::vector<std::unique_ptr<PreTokenizer>> steps) : steps_(std::move(steps)) {}
  Words apply(Words words) const override {
    for (const auto& step : steps_) {
      words = step->apply(std::move(words));
    }
    return words;
  }

 private:
  std::vector<std::unique_ptr<PreTokenizer>> steps_;
};

// Files of before 2023 have add_prefix_space, later ones prepend_scheme, some both.
PrependScheme scheme_of(const nlohmann::json& spec, const std::string& where) {
  if (member(spec, "prepend_scheme").is_null()) {
    return bool_or(spec, "add_prefix_space", true, where) ? PrependScheme::kAlways
                                                          : PrependScheme::kNever;
  }
  const std::string scheme = require_string(spec, "prepend_scheme", where);
  if (scheme == "always") return PrependScheme::kAlways;
  if (scheme == "first") return PrependScheme::kFirst;
  if (scheme == "never") return PrependScheme::kNever;
  fail(ErrorKind::kFile, "{}: 'prepend_scheme' is '{}', always, first or never expected", where,
       scheme);
}

std::unique_ptr<PreTokenizer> read_metaspace(const nlohmann::json& spec, const std::string& where) {
  std::string mark = require_string(spec, "replacement", where);
  if (mark.empty() || code_point_at(mark, 0).size != mark.size()) {
    fail(ErrorKind::kFile, "{}: 'replacement' is '{}', one character expected", where, mark);
  }
  const PrependScheme scheme = scheme_of(spec, where);
  return std::make_unique<Metaspace>(std::move(mark), scheme, bool_or(spec, "split", true, where));
}

Split::Behavior behavior_of(const nlohmann::json& spec, const std::string& where) {
  using Behavior = Split::Behavior;
  const std::string name = require_string(spec, "behavior", where);
  if (name == "Removed") return Behavior::kRemoved;
  if (name == "Isolated") return Behavior::kIsolated;
  if (name == "MergedWithPrevious") return Behavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return Behavior::kMergedWithNext;
  if (name == "Contiguous") return Behavior::kContiguous;
  fail(ErrorKind::kFile, "{}: unknown behavior '{}'", where, name);
}

std::unique_ptr<PreTokenizer> read_sequence(const nlohmann::json& spec, const std::string& where) {
  const nlohmann::json& list = member(spec, "pretokenizers");
  if (!list.is_array()) {
    fail(ErrorKind::kFile, "{}: 'pretokenizers' must be a list", where);
  }
  std::vector<std::unique_ptr<PreTokenizer>> steps;
  for (const nlohmann::json& step : list) {
    if (auto made = make_pre_tokenizer(step, where)) {
      steps.push_back(std::move(made));
    }
  }
  return std::make_unique<Sequence>(std::move(steps));
}

}  // namespace

void Words::add(size_t begin, size_t end) {
  if (begin < end) {
    ranges.push_back({begin, end, text.origin[begin].begin == 0});
  }
}

std::unique_ptr<PreTokenizer> make_metaspace(PrependScheme scheme) {
  return std::make_unique<Metaspace>(std::string(kMark), scheme, true);
}

std::unique_ptr<PreTokenizer> make_t5_pre_tokenizer() {
  std::vector<std::unique_ptr<PreTokenizer>> steps;
  steps.push_back(std::make_unique<WhitespaceSplit>());
  steps.push_back(make_metaspace(PrependScheme::kAlways));
  return std::make_unique<Sequence>(std::move(steps));
}

std::unique_ptr<PreTokenizer> make_pre_tokenizer(const nlohmann::json& spec,
                                                 const std::string& where) {
  if (spec.is_null()) {
    return nullptr;
  }
  const std::string type = require_string(spec, "type", where);
  const std::string here = component(where, type);
  if (type == "Sequence") {
    return read_sequence(spec, here);
  }
  if (type == "Metaspace") {
    return read_metaspace(spec, here);
  }
  if (type == "WhitespaceSplit") {
    return std::make_unique<WhitespaceSplit>();
  }
  if (type == "Whitespace") {
    return std::make_unique<Whitespace>();
  }
  if (type == "Split") {
    return std::make_unique<Split>(Pattern(member(spec, "pattern"), here), behavior_of(spec, here),
                                   bool_or(spec, "invert", false, here));
  }
  fail(ErrorKind::kFile,
       "{}: '{}' is not supported; this program knows Sequence, Metaspace, WhitespaceSplit, "
       "Whitespace, Split",
       where, type);
}

}  // namespace quintet
