// A queue between two threads that holds at most `capacity` items: a fast producer waits.
#ifndef QUINTET_CORE_BOUNDED_QUEUE_H_
#define QUINTET_CORE_BOUNDED_QUEUE_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace quintet {

template <typename T>
class BoundedQueue {
 public:
  explicit BoundedQueue(size_t capacity) : capacity_(capacity) {}

  // Waits for room; false once the queue is closed (the item is dropped).
  bool push(T item) {
    std::unique_lock lock(mutex_);
    has_room_.wait(lock, [&] { return closed_ || items_.size() < capacity_; });
    if (closed_) return false;
    items_.push_back(std::move(item));
    has_item_.notify_one();
    return true;
  }

  // Waits for an item; nothing once the queue is closed and drained.
  std::optional<T> pop() {
    std::unique_lock lock(mutex_);
    has_item_.wait(lock, [&] { return closed_ || !items_.empty(); });
    if (items_.empty()) return std::nullopt;
    std::optional<T> item(std::move(items_.front()));
    items_.pop_front();
    has_room_.notify_one();
    return item;
  }

  // No more items will come; those inside are still handed out.
  void close() {
    const std::scoped_lock lock(mutex_);
    closed_ = true;
    has_room_.notify_all();
    has_item_.notify_all();
  }

  // Closes and throws away what is inside: the run has failed.
  void abort() {
    const std::scoped_lock lock(mutex_);
    closed_ = true;
    items_.clear();
    has_room_.notify_all();
    has_item_.notify_all();
  }

  // Whether the call would return at once; for a thread that has other things to do meanwhile.
  bool can_push() const {
    const std::scoped_lock lock(mutex_);
    return closed_ || items_.size() < capacity_;
  }
  bool can_pop() const {
    const std::scoped_lock lock(mutex_);
    return closed_ || !items_.empty();
  }

  size_t size() const {
    const std::scoped_lock lock(mutex_);
    return items_.size();
  }

 private:
  const size_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable has_room_;
  std::condition_variable has_item_;
  std::deque<T> items_;
  bool closed_ = false;
};

}  // namespace quintet

#endif  // QUINTET_CORE_BOUNDED_QUEUE_H_
