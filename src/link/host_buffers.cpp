#include "link/host_buffers.h"

#include <cstddef>
#include <limits>
#include <new>

#include "core/error.h"

namespace quintet {
namespace {

// A kept buffer serves a request unless it is this many times larger: otherwise one very long
// sequence would leave its memory bound to short ones.
constexpr size_t kMaxSlack = 4;
constexpr size_t kSmall = size_t{64} << 10;  // floats; below it slack does not matter
constexpr size_t kMost = std::numeric_limits<ptrdiff_t>::max() / 8;

}  // namespace

void HostRows::release() {
  if (memory_ == nullptr) return;
  if (const std::shared_ptr<HostBuffers> home = home_.lock()) {
    home->give_back(std::move(memory_), capacity_);
  }
  memory_.reset();
  size_ = 0;
  capacity_ = 0;
}

std::shared_ptr<HostBuffers> HostBuffers::create(size_t keep) {
  return std::shared_ptr<HostBuffers>(new HostBuffers(keep));
}

HostRows HostBuffers::take(size_t size) {
  HostRows rows;
  rows.size_ = size;
  rows.home_ = weak_from_this();
  {
    const std::scoped_lock lock(mutex_);
    for (auto kept = kept_.begin(); kept != kept_.end(); ++kept) {
      if (kept->capacity < size || kept->capacity / kMaxSlack > size + kSmall) continue;
      rows.memory_ = std::move(kept->memory);
      rows.capacity_ = kept->capacity;
      kept_.erase(kept);
      return rows;
    }
  }
  // An eighth more than asked for: the next micro-batches differ by a few tokens.
  if (size <= kMost) rows.memory_.reset(new (std::nothrow) float[size + size / 8]);
  if (rows.memory_ == nullptr) {
    fail(ErrorKind::kMemory, "host memory: no room for {} numbers of 4 bytes", size);
  }
  rows.capacity_ = size + size / 8;
  return rows;
}

size_t HostBuffers::kept_bytes() const {
  const std::scoped_lock lock(mutex_);
  size_t bytes = 0;
  for (const Kept& kept : kept_) bytes += kept.capacity * sizeof(float);
  return bytes;
}

void HostBuffers::give_back(std::unique_ptr<float[]> memory, size_t capacity) {
  Kept dropped;  // freed after the lock
  const std::scoped_lock lock(mutex_);
  kept_.push_back({std::move(memory), capacity});
  if (kept_.size() <= keep_) return;
  dropped = std::move(kept_.front());
  kept_.pop_front();
}

}  // namespace quintet
