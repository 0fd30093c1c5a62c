#include "tokenizer/pre_tokenizer.h"

#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/byte_level.h"
#include "tokenizer/json_fields.h"
#include "tokenizer/pattern.h"

namespace quintet {
namespace {

constexpr const char* kMark = "\xE2\x96\x81";  // U+2581, "▁"

void emit(const TracedText& text, size_t begin, size_t end, const WordSink& sink) {
  if (begin < end) sink(text, {begin, end});
}

class WhitespaceSplit : public PreTokenizer {
 public:
  void cut(const TracedText& in, WordRange range, const WordSink& sink) const override {
    size_t word = range.begin;
    for (size_t at = range.begin; at < range.end;) {
      const CodePoint c = code_point_at(in.text, at);
      if (is_white_space(c.value)) {
        emit(in, word, at, sink);
        word = at + c.size;
      }
      at += c.size;
    }
    emit(in, word, range.end, sink);
  }
};

// \w+|[^\w\s]+
class Whitespace : public PreTokenizer {
 public:
  void cut(const TracedText& in, WordRange range, const WordSink& sink) const override {
    size_t word = range.begin;
    Kind kind = Kind::kSpace;
    for (size_t at = range.begin; at < range.end;) {
      const CodePoint c = code_point_at(in.text, at);
      const Kind next = kind_of(c.value);
      if (next != kind) {
        if (kind != Kind::kSpace) emit(in, word, at, sink);
        word = at;
        kind = next;
      }
      at += c.size;
    }
    if (kind != Kind::kSpace) emit(in, word, range.end, sink);
  }

 private:
  enum class Kind { kSpace, kWord, kOther };
  static Kind kind_of(int32_t c) {
    return is_word_character(c) ? Kind::kWord : is_white_space(c) ? Kind::kSpace : Kind::kOther;
  }
};

// Spaces become the mark, a mark may be put in front, and a new word begins at each mark.
class Metaspace : public PreTokenizer {
 public:
  Metaspace(std::string mark, PrependScheme scheme, bool split)
      : mark_(std::move(mark)), scheme_(scheme), split_(split) {}

  void cut(const TracedText& in, WordRange range, const WordSink& sink) const override {
    if (range.begin == range.end) return;
    const std::string& text = in.text;
    const auto is_mark = [&](size_t at) { return text.compare(at, mark_.size(), mark_) == 0; };
    TracedText word = in.like();
    const bool marked = text[range.begin] == ' ' || is_mark(range.begin);
    const uint32_t from = in.origin_of(range.begin, range.begin + 1).begin;
    if (!marked &&
        (scheme_ == PrependScheme::kAlways || (scheme_ == PrependScheme::kFirst && from == 0))) {
      word.append(mark_, {from, from});
    }
    for (size_t at = range.begin; at < range.end;) {
      const size_t size = code_point_at(text, at).size;
      const bool is_space = text[at] == ' ';
      if (split_ && (is_space || is_mark(at))) {
        emit(word, 0, word.text.size(), sink);
        word.clear();
      }
      if (is_space) {
        word.append(mark_, in.origin_of(at, at + 1));
      } else {
        word.append(in, at, at + size);
      }
      at += size;
    }
    emit(word, 0, word.text.size(), sink);
  }

 private:
  std::string mark_;
  PrependScheme scheme_;
  bool split_;
};

class Split : public PreTokenizer {
 public:
  enum class Behavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

  Split(Pattern pattern, Behavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}

  void cut(const TracedText& in, WordRange range, const WordSink& sink) const override {
    const std::string_view text =
        std::string_view(in.text).substr(range.begin, range.end - range.begin);
    Part held;  // may yet join the part behind it
    const auto put = [&](const Part& part) {
      if (part.begin == part.end) return;
      if (joins(held, part)) {
        held = {held.begin, part.end, part.is_match};
        return;
      }
      emit_part(in, range.begin, held, sink);
      held = part;
    };
    size_t at = 0;
    pattern_.for_each_match(text, [&](Pattern::Match match) {
      put({at, match.begin, invert_});
      put({match.begin, match.end, !invert_});
      at = match.end;
    });
    put({at, text.size(), invert_});
    emit_part(in, range.begin, held, sink);
  }

 private:
  struct Part {
    size_t begin = 0;
    size_t end = 0;
    bool is_match = false;
  };

  // What has joined counts as its last part, so three parts join only where they are contiguous.
  bool joins(const Part& part, const Part& next) const {
    if (part.begin == part.end) return false;
    switch (behavior_) {
      case Behavior::kContiguous:
        return part.is_match == next.is_match;
      case Behavior::kMergedWithPrevious:
        return !part.is_match && next.is_match;
      case Behavior::kMergedWithNext:
        return part.is_match && !next.is_match;
      default:
        return false;
    }
  }

  void emit_part(const TracedText& text, size_t base, const Part& part,
                 const WordSink& sink) const {
    if (behavior_ != Behavior::kRemoved || !part.is_match) {
      emit(text, base + part.begin, base + part.end, sink);
    }
  }

  Pattern pattern_;
  Behavior behavior_;
  bool invert_;
};

class Sequence : public PreTokenizer {
 public:
  explicit Sequence(std::vector<std::unique_ptr<PreTokenizer>> steps) : steps_(std::move(steps)) {}

  void cut(const TracedText& text, WordRange range, const WordSink& sink) const override {
    if (steps_.empty()) {
      emit(text, range.begin, range.end, sink);
      return;
    }
    // Each step but the last hands its words to the one behind it.
    std::vector<WordSink> sinks(steps_.size());
    sinks.back() = std::cref(sink);
    for (size_t i = steps_.size() - 1; i > 0; --i) {
      sinks[i - 1] = [&step = *steps_[i], &next = sinks[i]](const TracedText& t, WordRange r) {
        step.cut(t, r, next);
      };
    }
    steps_[0]->cut(text, range, sinks[0]);
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
  if (type == "ByteLevel") {
    return make_byte_level(bool_or(spec, "add_prefix_space", true, here),
                           bool_or(spec, "use_regex", true, here));
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
       "{}: '{}' is not supported; this program knows Sequence, Metaspace, ByteLevel, "
       "WhitespaceSplit, Whitespace, Split",
       where, type);
}

}  // namespace quintet
