// Host memory for rows on their way: taken, filled, handed from thread to thread, and given back by
// whoever drops it last, so that a long run allocates only in its first moments.
#ifndef QUINTET_LINK_HOST_BUFFERS_H_
#define QUINTET_LINK_HOST_BUFFERS_H_

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>

namespace quintet {

class HostBuffers;

// `size` floats, contents undefined until written. Moves like a unique_ptr; its memory goes back to
// the HostBuffers it came from, or is freed where those are gone.
class HostRows {
 public:
  HostRows() = default;
  ~HostRows() { release(); }
  HostRows(HostRows&& other) noexcept { swap(other); }
  HostRows& operator=(HostRows&& other) noexcept {
    HostRows(std::move(other)).swap(*this);
    return *this;
  }
  HostRows(const HostRows&) = delete;
  HostRows& operator=(const HostRows&) = delete;

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  float* data() { return memory_.get(); }
  const float* data() const { return memory_.get(); }
  float* begin() { return data(); }
  float* end() { return data() + size_; }
  const float* begin() const { return data(); }
  const float* end() const { return data() + size_; }
  float& operator[](size_t i) { return memory_[i]; }
  float operator[](size_t i) const { return memory_[i]; }

 private:
  friend class HostBuffers;
  void release();
  void swap(HostRows& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    std::swap(home_, other.home_);
  }

  std::unique_ptr<float[]> memory_;
  size_t size_ = 0;
  size_t capacity_ = 0;
  std::weak_ptr<HostBuffers> home_;
};

// Thread-safe. Keeps at most `keep` buffers that are not in use, the latest ones: the memory of one
// very long sequence is freed once a few shorter ones have passed.
class HostBuffers : public std::enable_shared_from_this<HostBuffers> {
 public:
  static std::shared_ptr<HostBuffers> create(size_t keep);

  HostRows take(size_t size);  // throws Error(kMemory)
  size_t kept_bytes() const;   // not in use

 private:
  friend class HostRows;
  struct Kept {
    std::unique_ptr<float[]> memory;
    size_t capacity = 0;
  };

  explicit HostBuffers(size_t keep) : keep_(keep) {}
  void give_back(std::unique_ptr<float[]> memory, size_t capacity);

  const size_t keep_;
  mutable std::mutex mutex_;
  std::deque<Kept> kept_;
};

}  // namespace quintet

#endif  // QUINTET_LINK_HOST_BUFFERS_H_
