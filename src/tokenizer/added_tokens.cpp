#include "tokenizer/added_tokens.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace quintet {
namespace {

using Keys = std::map<std::string, int32_t>;

ByteTrie build_trie(const Keys& keys) {
  std::vector<std::string_view> sorted;
  std::vector<int32_t> ids;
  for (const auto& [key, id] : keys) {
    sorted.emplace_back(key);
    ids.push_back(id);
  }
  return {sorted, ids};
}

bool stands_alone(std::string_view text, size_t begin, size_t end) {
  const bool word_before =
      begin > 0 && is_word_character(code_point_at(text, previous_boundary(text, begin)).value);
  const bool word_behind = end < text.size() && is_word_character(code_point_at(text, end).value);
  return !word_before && !word_behind;
}

bool is_stripped(int32_t c, const AddedToken& token) {
  return is_white_space(c) || (token.strips_separators && c >= 0x1C && c <= 0x1F);
}

// Over the white space left of `begin`, not further than `limit`.
size_t extend_left(std::string_view text, size_t begin, size_t limit, const AddedToken& token) {
  while (begin > limit) {
    const size_t previous = previous_boundary(text, begin);
    if (!is_stripped(code_point_at(text, previous).value, token)) break;
    begin = previous;
  }
  return begin;
}

size_t extend_right(std::string_view text, size_t end, const AddedToken& token) {
  while (end < text.size() && is_stripped(code_point_at(text, end).value, token)) {
    end += code_point_at(text, end).size;
  }
  return end;
}

}  // namespace

AddedTokens::AddedTokens(const std::vector<AddedToken>& tokens, const WordModel& model,
                         const Normalizer* normalizer, const std::string& where) {
  if (tokens.size() > kMaxPieces) {
    fail(ErrorKind::kFile, "{}: {} added tokens, at most {} are accepted", where, tokens.size(),
         kMaxPieces);
  }
  int32_t next_id = model.vocab_size();
  for (const AddedToken& token : tokens) {
    if (token.content.empty()) {
      continue;
    }
    if (token.content.size() > kMaxPieceBytes) {
      fail(ErrorKind::kFile, "{}: an added token of {} bytes, at most {} are accepted", where,
           token.content.size(), kMaxPieceBytes);
    }
    const auto known = find(token.content);
    const auto fixed = token.id ? token.id : known ? known : model.find(token.content);
    const int32_t id = fixed ? *fixed : next_id++;
    next_id = std::max(next_id, id + 1);
    ids_[token.content] = id;
    const bool was_special = tokens_[id].special;
    tokens_[id] = token;
    tokens_[id].special = token.special || was_special;
  }
  const std::string normalizer_name = where + ": normalizer";
  Keys raw;
  Keys normalized;
  for (const auto& [content, id] : ids_) {
    if (!tokens_[id].normalized) {
      raw[content] = id;
      continue;
    }
    std::string key = content;
    if (normalizer != nullptr) {
      const TextBudget budget = text_budget(content.size(), normalizer_name);
      key = normalizer->apply(trace_utf8(content, Tracing::kBeginning, &budget)).text;
    }
    if (!key.empty()) {
      normalized[key] = id;
    }
  }
  raw_ = build_trie(raw);
  normalized_ = build_trie(normalized);
}

std::optional<AddedTokens::Part> AddedTokens::Parts::next_token() {
  while (at_ < text_.size()) {
    size_t length = 0;
    int32_t id = 0;
    trie_->for_each_prefix(text_.substr(at_), [&](size_t n, int32_t value) {
      length = n;
      id = value;
    });
    if (length == 0) {
      ++at_;
      continue;
    }
    const AddedToken& token = tokens_->tokens_.at(id);
    size_t begin = at_;
    size_t end = at_ + length;
    at_ = end;
    if (begin < done_ || (token.single_word && !stands_alone(text_, begin, end))) {
      continue;
    }
    if (token.lstrip) begin = extend_left(text_, begin, done_, token);
    if (token.rstrip) end = extend_right(text_, end, token);
    return Part{id, begin, end};
  }
  return std::nullopt;
}

std::optional<AddedTokens::Part> AddedTokens::Parts::next() {
  if (held_) {
    return std::exchange(held_, std::nullopt);
  }
  const std::optional<Part> token = next_token();
  const size_t begin = std::exchange(done_, token ? token->end : text_.size());
  const size_t end = token ? token->begin : text_.size();
  if (begin == end) {
    return token;
  }
  held_ = token;
  return Part{std::nullopt, begin, end};
}

std::optional<int32_t> AddedTokens::find(std::string_view content) const {
  const auto found = ids_.find(content);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

std::string_view AddedTokens::piece(int32_t id) const {
  const auto found = tokens_.find(id);
  return found == tokens_.end() ? std::string_view() : std::string_view(found->second.content);
}

bool AddedTokens::is_special(std::string_view content) const {
  const auto id = find(content);
  return id && tokens_.at(*id).special;
}

int32_t AddedTokens::end_id() const {
  int32_t end = 0;
  for (const auto& [content, id] : ids_) {
    end = std::max(end, id + 1);
  }
  return end;
}

}  // namespace quintet
