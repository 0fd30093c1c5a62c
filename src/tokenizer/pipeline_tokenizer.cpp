#include "tokenizer/pipeline_tokenizer.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "tokenizer/byte_level.h"

namespace quintet {
namespace {

// The bytes of text that the spaces at the beginning of `piece` stand for.
size_t leading_spaces(std::string_view piece) {
  const std::string_view byte_level_space = byte_level_character(' ');
  size_t bytes = 0;
  while (!piece.empty()) {
    const bool is_moved = piece.starts_with(byte_level_space);
    const CodePoint c = code_point_at(piece, 0);
    if (!is_moved && !is_white_space(c.value)) break;
    bytes += is_moved ? 1 : c.size;
    piece.remove_prefix(c.size);
  }
  return bytes;
}

size_t trailing_spaces(std::string_view piece) {
  size_t bytes = 0;
  while (!piece.empty()) {
    const size_t last = previous_boundary(piece, piece.size());
    const size_t size = leading_spaces(piece.substr(last));
    if (size == 0) break;
    bytes += size;
    piece.remove_suffix(piece.size() - last);
  }
  return bytes;
}

// Takes the spaces around a token of `text` off its offsets. With `keeps_one` a single one in front
// stays. A space that the tokenizer has put in front of the text stands for the first character,
// which may be longer: offsets do not end up inside of it.
void trim_spaces(Token& token, std::string_view text, bool keeps_one) {
  const auto is_inside = [&](uint32_t at) {
    return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;
  };
  const auto leading = static_cast<uint32_t>(leading_spaces(token.piece));
  const auto trailing = static_cast<uint32_t>(trailing_spaces(token.piece));
  if (leading > 1 || !keeps_one) token.begin = std::min(token.begin + leading, token.end);
  while (token.begin < token.end && is_inside(token.begin)) ++token.begin;
  if (token.end >= trailing) token.end = std::max(token.end - trailing, token.begin);
  while (token.begin < token.end && is_inside(token.end)) --token.end;
}

}  // namespace

PipelineTokenizer::PipelineTokenizer(PipelineParts parts, const std::string& where)
    : normalizer_(std::move(parts.normalizer)),
      pre_tokenizer_(std::move(parts.pre_tokenizer)),
      model_(std::move(parts.model)),
      post_template_(std::move(parts.post_template)),
      decoder_(std::move(parts.decoder)),
      clean_up_(parts.clean_up),
      normalizer_name_(where + ": normalizer"),
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

void PipelineTokenizer::Placed::add(int32_t id, Span span, Tracing tracing) {
  ids.push_back(id);
  if (tracing == Tracing::kBytes) spans.push_back(span);
}

PipelineTokenizer::Placed PipelineTokenizer::place_tokens(std::string_view text, bool add_special,
                                                          Tracing tracing) const {
  Placed placed;
  const TextBudget budget = text_budget(text.size(), normalizer_name_);
  TracedText traced = trace_utf8(text, tracing, &budget);
  for (size_t i = 0; i < post_template_.before.size() && add_special; ++i) {
    placed.add(post_template_.before[i], {0, 0}, tracing);
  }
  AddedTokens::Parts parts = added_.split_raw(traced.text);
  while (const auto part = parts.next()) {
    if (part->id) {
      placed.add(*part->id, traced.origin_of(part->begin, part->end), tracing);
    } else if (part->end - part->begin == traced.text.size()) {
      encode_raw(std::move(traced), placed);
      break;
    } else {
      encode_raw(traced.slice(part->begin, part->end), placed);
    }
  }
  if (add_special) {
    const auto& after = post_template_.after;
    const bool is_there = post_template_.after_once && placed.ids.size() >= after.size() &&
                          std::equal(after.rbegin(), after.rend(), placed.ids.rbegin());
    const auto end = static_cast<uint32_t>(text.size());
    for (size_t i = 0; i < after.size() && !is_there; ++i) {
      placed.add(after[i], {end, end}, tracing);
    }
  }
  return placed;
}

void PipelineTokenizer::encode_raw(TracedText text, Placed& placed) const {
  if (normalizer_) {
    text = normalizer_->apply(std::move(text));
  }
  AddedTokens::Parts parts = added_.split_normalized(text.text);
  while (const auto part = parts.next()) {
    if (part->id) {
      placed.add(*part->id, text.origin_of(part->begin, part->end), text.tracing);
    } else if (part->end - part->begin == text.text.size()) {
      encode_words(text, placed);
    } else {
      encode_words(text.slice(part->begin, part->end), placed);
    }
  }
}

void PipelineTokenizer::encode_words(const TracedText& text, Placed& placed) const {
  const TracedText* place = nullptr;  // of the word at hand
  size_t base = 0;
  const TokenSink add_token = [&](const WordToken& token) {
    placed.add(token.id, place->origin_of(base + token.begin, base + token.end), place->tracing);
  };
  const WordSink add_word = [&](const TracedText& in, WordRange word) {
    place = &in;
    base = word.begin;
    model_->encode(std::string_view(in.text).substr(word.begin, word.end - word.begin), add_token);
  };
  const WordRange all{0, text.text.size()};
  if (pre_tokenizer_) {
    pre_tokenizer_->cut(text, all, add_word);
  } else {
    add_word(text, all);
  }
}

std::vector<int32_t> PipelineTokenizer::encode(std::string_view text, bool add_special) const {
  return place_tokens(text, add_special, Tracing::kBeginning).ids;
}

std::vector<Token> PipelineTokenizer::encode_tokens(std::string_view text, bool add_special) const {
  const Placed placed = place_tokens(text, add_special, Tracing::kBytes);
  std::vector<Token> tokens;
  tokens.reserve(placed.ids.size());
  for (size_t i = 0; i < placed.ids.size(); ++i) {
    const int32_t id = placed.ids[i];
    tokens.push_back({id, piece_of(id), placed.spans[i].begin, placed.spans[i].end});
    if (post_template_.trims_spaces) {
      const bool is_first = i == 0 || tokens[i].begin == 0;
      trim_spaces(tokens[i], text, is_first && post_template_.keeps_first_space);
    }
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

std::string_view PipelineTokenizer::piece_of(int32_t id) const {
  const std::string_view added = added_.piece(id);
  return added.empty() ? model_->piece(id) : added;
}

std::string PipelineTokenizer::piece(int32_t id) const { return std::string(piece_of(id)); }

int32_t PipelineTokenizer::unk_id() const { return model_->unk_id().value_or(-1); }

std::optional<int32_t> PipelineTokenizer::eos_id() const {
  return post_template_.after.empty() ? std::nullopt : std::optional(post_template_.after.back());
}

bool PipelineTokenizer::is_special(int32_t id) const { return added_.is_special(piece_of(id)); }

StreamDecoder PipelineTokenizer::stream_decoder(const DecodeOptions& options) const {
  const bool clean_up =
      clean_up_.has_value() && options.clean_up_tokenization_spaces.value_or(*clean_up_);
  const auto lookup = [this, skip = options.skip_special_tokens](
                          int32_t id) -> std::optional<StreamDecoder::Token> {
    const std::string_view added = added_.piece(id);
    const std::string_view piece = added.empty() ? model_->piece(id) : added;
    if (piece.empty() || (skip && added_.is_special(piece))) return std::nullopt;
    return StreamDecoder::Token{piece, !added.empty()};
  };
  return {lookup, decoder_(), clean_up};
}

}  // namespace quintet
