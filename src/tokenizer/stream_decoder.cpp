#include "tokenizer/stream_decoder.h"

#include <algorithm>
#include <array>
#include <utility>

namespace quintet {
namespace {

// The reference's clean-up, in its order.
constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kCleanUp{{
    {" .", "."},
    {" ?", "?"},
    {" !", "!"},
    {" ,", ","},
    {" ' ", "'"},
    {" n't", "n't"},
    {" 'm", "'m"},
    {" 's", "'s"},
    {" 've", "'ve"},
    {" 're", "'re"},
}};

}  // namespace

std::string StreamDecoder::Replacement::push(std::string_view text) {
  held_ += text;
  std::string out;
  size_t at = 0;
  for (size_t found = held_.find(from_); found != held_.npos; found = held_.find(from_, at)) {
    out.append(held_, at, found - at).append(to_);
    at = found + from_.size();
  }
  size_t n_kept = std::min(from_.size() - 1, held_.size() - at);
  while (!held_.ends_with(from_.substr(0, n_kept))) --n_kept;
  out.append(held_, at, held_.size() - n_kept - at);
  held_.erase(0, held_.size() - n_kept);
  return out;
}

StreamDecoder::StreamDecoder(Lookup lookup, std::unique_ptr<TokenText> text, bool clean_up)
    : lookup_(std::move(lookup)), text_(std::move(text)) {
  if (!clean_up) return;
  for (const auto& [from, to] : kCleanUp) clean_up_.emplace_back(from, to);
}

std::string StreamDecoder::push(int32_t id) {
  std::string text;
  if (const auto token = lookup_(id)) text_->push(token->piece, token->is_added, text);
  for (Replacement& step : clean_up_) text = step.push(text);
  return text;
}

std::string StreamDecoder::flush() {
  std::string text;
  text_->flush(text);
  for (Replacement& step : clean_up_) {
    text = step.push(text);
    text += step.flush();
  }
  return text;
}

}  // namespace quintet
