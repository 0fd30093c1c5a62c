#include "generation/stop.h"

#include <algorithm>

#include "core/error.h"

namespace quintet {

StopRule::StopRule(const GenerationConfig& config, const SearchInput& input)
    : eos_(config.eos_token_id), stop_strings_(config.stop_strings), decode_(input.decode) {
  for (const auto& text : stop_strings_) longest_ = std::max(longest_, text.size());
  if (!stop_strings_.empty() && !decode_) {
    fail(ErrorKind::kUsage,
         "stop_strings: needs the model's tokenizer, and there is none; use eos_token_id instead");
  }
}

bool StopRule::ends(std::span<const int32_t> ids) const {
  if (std::find(eos_.begin(), eos_.end(), ids.back()) != eos_.end()) return true;
  return !stop_strings_.empty() && completes_stop_string(ids);
}

bool StopRule::completes_stop_string(std::span<const int32_t> ids) const {
  // Every token of a match but the last gives a byte or more. A few tokens more, because the first
  // one may be decoded without its leading space.
  constexpr size_t kMore = 8;
  const auto tail = ids.last(std::min(ids.size(), longest_ + kMore));
  const std::string before = decode_(tail.first(tail.size() - 1));
  const std::string text = decode_(tail);
  // What the last token brought: it may also have completed a character that was a replacement.
  const auto end = std::min(before.size(), text.size());
  const auto mismatch =
      std::mismatch(before.begin(), before.begin() + static_cast<ptrdiff_t>(end), text.begin());
  const auto n_known = static_cast<size_t>(mismatch.second - text.begin());
  return std::any_of(stop_strings_.begin(), stop_strings_.end(), [&](const std::string& stop) {
    const size_t from = n_known + 1 > stop.size() ? n_known + 1 - stop.size() : 0;
    return text.find(stop, from) != std::string::npos;
  });
}

}  // namespace quintet
