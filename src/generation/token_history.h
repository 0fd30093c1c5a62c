// The decoder's ids of one row, prompt and new tokens, and which ids are among them.
#ifndef QUINTET_GENERATION_TOKEN_HISTORY_H_
#define QUINTET_GENERATION_TOKEN_HISTORY_H_

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace quintet {

class TokenHistory {
 public:
  explicit TokenHistory(std::vector<int32_t> ids) : ids_(std::move(ids)), distinct_(ids_) {
    std::sort(distinct_.begin(), distinct_.end());
    distinct_.erase(std::unique(distinct_.begin(), distinct_.end()), distinct_.end());
  }

  void append(int32_t token) {
    ids_.push_back(token);
    const auto place = std::lower_bound(distinct_.begin(), distinct_.end(), token);
    if (place == distinct_.end() || *place != token) distinct_.insert(place, token);
  }

  const std::vector<int32_t>& ids() const { return ids_; }
  const std::vector<int32_t>& distinct() const { return distinct_; }  // each id once, rising

 private:
  std::vector<int32_t> ids_;
  std::vector<int32_t> distinct_;
};

}  // namespace quintet

#endif  // QUINTET_GENERATION_TOKEN_HISTORY_H_
