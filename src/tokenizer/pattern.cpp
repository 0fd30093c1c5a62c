#include "tokenizer/pattern.h"

#include <re2/re2.h>

#include "core/error.h"

namespace quintet {
namespace {

constexpr size_t kMaxPatternBytes = 4096;
// Spaces at the very beginning and end. Searched for, every run of spaces in the text would be
// tried at each of its positions.
constexpr std::string_view kTrimSpaces = R"(\A +| +\z)";

// The members of a class escape, in Unicode as the reference's engine reads it; without brackets.
std::string_view class_members(char escape) {
  switch (escape) {
    case 's':
      return R"(\t-\r \x{85}\p{Z})";
    case 'd':
      return R"(\p{Nd})";
    case 'w':
      return R"(\p{L}\p{M}\p{N}\p{Pc})";
    default:
      return "";
  }
}

// RE2 reads \s, \d and \w as ASCII; everything else means the same in both.
std::string widen_classes(std::string_view pattern, const std::string& where) {
  std::string result = "(?m)";
  bool in_class = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c != '\\' || i + 1 == pattern.size()) {
      in_class = c == '[' || (in_class && c != ']');
      result += c;
      continue;
    }
    const char escape = pattern[++i];
    const char lower = static_cast<char>(escape | 0x20);
    const std::string_view members = class_members(lower);
    if (members.empty()) {
      result += {'\\', escape};
    } else if (!in_class) {
      result.append(escape == lower ? "[" : "[^").append(members).append("]");
    } else if (escape == lower) {
      result += members;
    } else {
      fail(ErrorKind::kFile, "{}: the pattern '{}' has \\{} inside a class, which is not supported",
           where, pattern, escape);
    }
  }
  return result;
}

}  // namespace

Pattern::Pattern(const nlohmann::json& spec, const std::string& where) {
  const bool is_literal = spec.is_object() && spec.contains("String");
  const bool is_regex = spec.is_object() && spec.contains("Regex");
  if (is_literal == is_regex || !spec[is_literal ? "String" : "Regex"].is_string()) {
    fail(ErrorKind::kFile, R"({}: a pattern is {{"String": text}} or {{"Regex": text}})", where);
  }
  literal_ = spec[is_literal ? "String" : "Regex"].get<std::string>();
  if (literal_.size() > kMaxPatternBytes) {
    fail(ErrorKind::kFile, "{}: a pattern of {} bytes, at most {} are accepted", where,
         literal_.size(), kMaxPatternBytes);
  }
  only_at_ends_ = is_regex && literal_ == kTrimSpaces;
  if (is_literal || only_at_ends_) {
    return;
  }
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(int64_t{8} << 20);
  auto regex = std::make_shared<re2::RE2>(widen_classes(literal_, where), options);
  if (!regex->ok()) {
    fail(ErrorKind::kFile, "{}: the pattern '{}' is not supported ({})", where, literal_,
         regex->error());
  }
  regex_ = std::move(regex);
}

void Pattern::for_each_match(std::string_view text, const std::function<void(Match)>& visit) const {
  if (only_at_ends_) {
    const size_t begin = std::min(text.find_first_not_of(' '), text.size());
    const size_t end = begin == text.size() ? begin : text.find_last_not_of(' ') + 1;
    if (begin > 0) visit({0, begin});
    if (end < text.size()) visit({end, text.size()});
    return;
  }
  if (regex_ == nullptr) {
    for (size_t at = literal_.empty() ? text.npos : text.find(literal_); at != text.npos;
         at = text.find(literal_, at + literal_.size())) {
      visit({at, at + literal_.size()});
    }
    return;
  }
  const re2::StringPiece subject(text.data(), text.size());
  re2::StringPiece found;
  for (size_t at = 0; at < text.size() &&
                      regex_->Match(subject, at, text.size(), re2::RE2::UNANCHORED, &found, 1);) {
    const auto begin = static_cast<size_t>(found.data() - text.data());
    at = begin + found.size();
    if (found.empty()) {
      at += 1;
      while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) ++at;
    } else {
      visit({begin, at});
    }
  }
}

}  // namespace quintet
