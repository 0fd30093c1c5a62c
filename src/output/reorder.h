// Puts results back into the order of the input: whatever finishes early waits here. Holds no more
// than what is in flight, as the packer's look-ahead and the queues bound it.
#ifndef QUINTET_OUTPUT_REORDER_H_
#define QUINTET_OUTPUT_REORDER_H_

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

namespace quintet {

// Items numbered without gaps, from `first` on, each pushed once and in any order.
template <typename T>
class Reorder {
 public:
  explicit Reorder(uint64_t first = 0) : next_(first) {}

  void push(uint64_t number, T item) {
    assert(number >= next_);
    [[maybe_unused]] const bool fresh = waiting_.emplace(number, std::move(item)).second;
    assert(fresh);
  }

  // The next item in order, or nothing: it has not been pushed yet.
  std::optional<T> pop() {
    const auto first = waiting_.begin();
    if (first == waiting_.end() || first->first != next_) return std::nullopt;
    std::optional<T> item(std::move(first->second));
    waiting_.erase(first);
    ++next_;
    return item;
  }

  uint64_t next() const { return next_; }
  size_t waiting() const { return waiting_.size(); }

 private:
  uint64_t next_;
  std::map<uint64_t, T> waiting_;
};

}  // namespace quintet

#endif  // QUINTET_OUTPUT_REORDER_H_
