#include "backends/cpu/cpu_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <new>
#include <string>
#include <utility>

#include "backends/host_memory.h"
#include "core/error.h"
#include "core/human.h"

namespace quintet {

namespace {

constexpr size_t kPage = 4096;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kMappedFrom = size_t{1} << 20;    // smaller blocks come from the heap
constexpr size_t kHugeFrom = size_t{4} << 20;      // larger ones start on a huge page
constexpr size_t kCheckedFrom = size_t{64} << 20;  // larger ones are compared with what is free
constexpr std::align_val_t kAlignment{64};

}  // namespace

// Keeps the memory alive that it came from.
class CpuBuffer final : public Buffer {
 public:
  CpuBuffer(std::shared_ptr<CpuMemory> memory, CpuMemory::Block block)
      : memory_(std::move(memory)), block_(block) {}
  ~CpuBuffer() override { memory_->give_back(block_); }
  CpuBuffer(const CpuBuffer&) = delete;
  CpuBuffer& operator=(const CpuBuffer&) = delete;
  size_t bytes() const override { return block_.bytes; }
  void* host() override { return block_.data; }

 private:
  std::shared_ptr<CpuMemory> memory_;
  CpuMemory::Block block_;
};

CpuMemory::~CpuMemory() { empty_cache(); }

std::shared_ptr<Buffer> CpuMemory::allocate(size_t bytes) {
  const Block block = take(bytes);
  try {
    return std::make_shared<CpuBuffer>(shared_from_this(), block);
  } catch (...) {
    give_back(block);
    throw;
  }
}

CpuMemory::Block CpuMemory::take(size_t bytes) {
  const std::scoped_lock lock(mutex_);
  if (bytes < kMappedFrom) {
    const size_t size = std::max<size_t>(64, (bytes + 63) / 64 * 64);
    Block block{static_cast<std::byte*>(::operator new(size, kAlignment)), size};
    used_ += size;
    peak_ = std::max(peak_, used_);
    return block;
  }
  const size_t size = (bytes + kPage - 1) / kPage * kPage;
  // The tightest cached block that is not much too large.
  auto best = cache_.end();
  for (auto it = cache_.begin(); it != cache_.end(); ++it) {
    if (it->bytes >= size && it->bytes - size <= size / 4 &&
        (best == cache_.end() || it->bytes < best->bytes)) {
      best = it;
    }
  }
  if (best != cache_.end()) {
    const Block block = *best;
    cache_.erase(best);
    cached_ -= block.bytes;
    used_ += block.bytes;
    peak_ = std::max(peak_, used_);
    return block;
  }
  // What is cached must not push the process above the most that it ever used at once.
  peak_ = std::max(peak_, used_ + size);
  while (!cache_.empty() && used_ + cached_ + size > peak_) {
    cached_ -= cache_.front().bytes;
    unmap(cache_.front());
    cache_.pop_front();
  }
  const Block block = map(size);
  used_ += size;
  return block;
}

CpuMemory::Block CpuMemory::map(size_t size) const {
  if (size >= kCheckedFrom) {
    const size_t free = host_memory().free;
    if (size > free) {
      fail(ErrorKind::kMemory,
           "{}: {} are needed for one more buffer, {} of memory are free ({} are in use by this "
           "device); use fewer tokens per batch, fewer blocks on it, or --dtype bfloat16",
           device_, human_bytes(size), human_bytes(free), human_bytes(used_));
    }
  }
  const size_t slack = size >= kHugeFrom ? kHugePage : 0;
  void* mapped =
      ::mmap(nullptr, size + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) {
    fail(ErrorKind::kMemory, "{}: the system refuses {} ({} are in use by this device)", device_,
         human_bytes(size), human_bytes(used_));
  }
  auto* data = static_cast<std::byte*>(mapped);
  if (slack > 0) {
    const size_t before = (kHugePage - reinterpret_cast<uintptr_t>(data) % kHugePage) % kHugePage;
    if (before > 0) ::munmap(data, before);
    if (slack > before) ::munmap(data + before + size, slack - before);
    data += before;
    ::madvise(data, size, MADV_HUGEPAGE);
  }
  return {data, size};
}

void CpuMemory::give_back(Block block) {
  const std::scoped_lock lock(mutex_);
  used_ -= block.bytes;
  if (block.bytes < kMappedFrom) {
    ::operator delete(block.data, kAlignment);
    return;
  }
  cached_ += block.bytes;
  cache_.push_back(block);
}

void CpuMemory::unmap(Block block) { ::munmap(block.data, block.bytes); }

MemoryInfo CpuMemory::info() const {
  const HostMemory system = host_memory();
  const std::scoped_lock lock(mutex_);
  return {.total = system.total, .free = system.free + cached_, .used = used_, .peak = peak_};
}

void CpuMemory::empty_cache() {
  const std::scoped_lock lock(mutex_);
  for (const Block& block : cache_) unmap(block);
  cache_.clear();
  cached_ = 0;
}

}  // namespace quintet
