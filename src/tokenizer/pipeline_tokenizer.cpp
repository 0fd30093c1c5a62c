#include "tokenizer/pipeline_tokenizer.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace quintet {

PipelineTokenizer::PipelineTokenizer(PipelineParts parts, const std::string& where)
    : normalizer_(std::move(parts.normalizer)),
      pre_tokenizer_(std::move(parts.pre_tokenizer)),
      model_(std::move(parts.model)),
      post_template_(std::move(parts.post_template)),
      added_(parts.added_tokens, *model_, normalizer_.get(), where) {
  for (const auto* ids : {&post_template_.before, &post_template_.after}) {
    for (const int32_t id : *ids) {
      if (piece(id).empty()) {
        fail(ErrorKind::kFile, "{}: the template adds token {}, which is not in the vocabulary",
             where, id);
      }
    }
  }
}

std::vector<PipelineTokenizer::Placed> PipelineTokenizer::place_tokens(std::string_view text,
                                                                       bool add_special) const {
  std::vector<Placed> placed;
  const TracedText traced = trace_utf8(text);
  if (add_special) {
    for (const int32_t id : post_template_.before) {
      placed.push_back({id, {0, 0}});
    }
  }
  for (const AddedTokens::Part& part : added_.split_raw(traced.text)) {
    if (part.id) {
      placed.push_back({*part.id, traced.origin_of(part.begin, part.end)});
    } else {
      encode_raw(traced.slice(part.begin, part.end), placed);
    }
  }
  if (add_special) {
    const auto& after = post_template_.after;
    const bool is_there = post_template_.after_once && placed.size() >= after.size() &&
                          std::equal(after.rbegin(), after.rend(), placed.rbegin(),
                                     [](int32_t id, const Placed& p) { return p.id == id; });
    const auto end = static_cast<uint32_t>(text.size());
    for (size_t i = 0; i < after.size() && !is_there; ++i) {
      placed.push_back({after[i], {end, end}});
    }
  }
  return placed;
}

void PipelineTokenizer::encode_raw(const TracedText& text, std::vector<Placed>& placed) const {
  const TracedText normalized = normalizer_ ? normalizer_->apply(text) : text;
  for (const AddedTokens::Part& part : added_.split_normalized(normalized.text)) {
    if (part.id) {
      placed.push_back({*part.id, normalized.origin_of(part.begin, part.end)});
    } else {
      encode_words(normalized.slice(part.begin, part.end), placed);
    }
  }
}

void PipelineTokenizer::encode_words(TracedText text, std::vector<Placed>& placed) const {
  Words words{std::move(text), {}};
  words.add(0, words.text.text.size());
  if (pre_tokenizer_) {
    words = pre_tokenizer_->apply(std::move(words));
  }
  const std::string_view all = words.text.text;
  std::vector<WordToken> tokens;
  for (const Words::Range& range : words.ranges) {
    tokens.clear();
    model_->encode(all.substr(range.begin, range.end - range.begin), tokens);
    for (const WordToken& token : tokens) {
      placed.push_back(
          {token.id, words.text.origin_of(range.begin + token.begin, range.begin + token.end)});
    }
  }
}

std::vector<int32_t> PipelineTokenizer::encode(std::string_view text, bool add_special) const {
  std::vector<int32_t> ids;
  for (const Placed& token : place_tokens(text, add_special)) {
    ids.push_back(token.id);
  }
  return ids;
}

std::vector<Token> PipelineTokenizer::encode_tokens(std::string_view text, bool add_special) const {
  std::vector<Token> tokens;
  for (const Placed& token : place_tokens(text, add_special)) {
    tokens.push_back({token.id, piece(token.id), token.span.begin, token.span.end});
  }
  return tokens;
}

int32_t PipelineTokenizer::vocab_size() const {
  return std::max(model_->vocab_size(), added_.end_id());
}

std::optional<int32_t> PipelineTokenizer::find(std::string_view piece) const {
  const auto added = added_.find(piece);
  return added ? added : model_->find(piece);
}

std::string PipelineTokenizer::piece(int32_t id) const {
  const std::string_view added = added_.piece(id);
  return std::string(added.empty() ? model_->piece(id) : added);
}

int32_t PipelineTokenizer::unk_id() const { return model_->unk_id().value_or(-1); }

std::optional<int32_t> PipelineTokenizer::eos_id() const {
  return post_template_.after.empty() ? std::nullopt : std::optional(post_template_.after.back());
}

}  // namespace quintet
