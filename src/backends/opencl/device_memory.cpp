#include "backends/opencl/device_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "backends/opencl/ledger.h"
#include "backends/opencl/opencl_error.h"
#include "core/error.h"
#include "core/human.h"

namespace quintet::opencl {
namespace {

constexpr size_t kSmallStep = 256;
constexpr size_t kLargeStep = 4096;
constexpr size_t kLargeFrom = size_t{64} << 10;

size_t rounded(size_t bytes) {
  const size_t step = bytes < kLargeFrom ? kSmallStep : kLargeStep;
  return std::max(step, (bytes + step - 1) / step * step);
}

// Of a device that is a processor, large buffers lie in huge pages where the system has them:
// streaming weights through small ones spends a fifth of its time looking their addresses up.
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kHugeFrom = size_t{4} << 20;

void CL_CALLBACK free_host(cl_mem /*memory*/, void* data) { std::free(data); }

cl::Buffer make_buffer(const cl::Context& context, const cl::Device& device, size_t bytes) {
  constexpr size_t kPage = 4096;
  const size_t size = (bytes + kPage - 1) / kPage * kPage;
  const bool processor = (device.getInfo<CL_DEVICE_TYPE>() & CL_DEVICE_TYPE_CPU) != 0;
  void* data = nullptr;
  if (!processor || bytes < kHugeFrom || ::posix_memalign(&data, kHugePage, size) != 0) {
    return {context, CL_MEM_READ_WRITE, bytes};
  }
  ::madvise(data, size, MADV_HUGEPAGE);  // advice only
  try {
    cl::Buffer buffer(context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, bytes, data);
    buffer.setDestructorCallback(&free_host, data);
    return buffer;
  } catch (const cl::Error&) {
    std::free(data);
    throw;
  }
}

}  // namespace

DeviceMemory::DeviceMemory(const FoundDevice& device, cl::Context context,
                           std::function<void(const cl::Buffer&)> commit)
    : name_(device.info.name),
      pool_(device.info.memory_pool),
      device_(device.device),
      context_(std::move(context)),
      largest_(device.device.getInfo<CL_DEVICE_MAX_MEM_ALLOC_SIZE>()),
      commit_(std::move(commit)) {}

DeviceMemory::~DeviceMemory() { empty_cache(); }

std::shared_ptr<PoolBuffer> DeviceMemory::allocate(size_t bytes, const std::string& what) {
  Block block = take(rounded(bytes), what);
  return std::make_shared<PoolBuffer>(shared_from_this(), std::move(block), bytes);
}

void DeviceMemory::count_use(size_t bytes) {
  used_ += bytes;
  peak_ = std::max(peak_, used_);
  Ledger::instance().use(name_, static_cast<ptrdiff_t>(bytes));
}

Block DeviceMemory::take(size_t bytes, const std::string& what) {
  const std::scoped_lock lock(mutex_);
  // The tightest kept block that is not much too large; of equal ones the one given back last.
  auto best = cache_.end();
  for (auto it = cache_.begin(); it != cache_.end(); ++it) {
    if (it->bytes >= bytes && it->bytes - bytes <= bytes / 4 &&
        (best == cache_.end() || it->bytes <= best->bytes)) {
      best = it;
    }
  }
  if (best != cache_.end()) {
    Block block = std::move(*best);
    cache_.erase(best);
    cached_ -= block.bytes;
    count_use(block.bytes);
    return block;
  }
  // What is kept must not take more than was ever used at once.
  const size_t most = std::max(peak_, used_ + bytes);
  while (!cache_.empty() && used_ + cached_ + bytes > most) drop_front();
  Block block = create(bytes, what);
  count_use(bytes);
  return block;
}

Block DeviceMemory::create(size_t bytes, const std::string& what) {
  const auto refuse = [&](const std::string& why) {
    fail(ErrorKind::kMemory,
         "{}: {} needs {}: {} ({} are free, a buffer may have at most {}, {} are in use by this "
         "device); use fewer tokens per batch, fewer blocks on it, or --dtype bfloat16",
         name_, what, human_bytes(bytes), why, human_bytes(free_memory(device_, pool_).free),
         human_bytes(largest_), human_bytes(used_));
  };
  if (bytes > largest_) refuse("larger than any buffer of this device");
  while (true) {
    if (bytes <= free_memory(device_, pool_).free) {
      try {
        Block block{make_buffer(context_, device_, bytes), bytes};
        commit_(block.memory);
        Ledger::instance().take(pool_, static_cast<ptrdiff_t>(bytes));
        return block;
      } catch (const cl::Error& error) {
        if (cache_.empty()) refuse(error_text(error.err()));
      }
    } else if (cache_.empty()) {
      refuse("more than is free");
    }
    drop_front();
  }
}

void DeviceMemory::drop_front() {
  const size_t bytes = cache_.front().bytes;
  cached_ -= bytes;
  cache_.pop_front();
  Ledger::instance().take(pool_, -static_cast<ptrdiff_t>(bytes));
}

void DeviceMemory::give_back(Block block) {
  const std::scoped_lock lock(mutex_);
  block.ticket = ops_;
  used_ -= block.bytes;
  Ledger::instance().use(name_, -static_cast<ptrdiff_t>(block.bytes));
  cached_ += block.bytes;
  cache_.push_back(std::move(block));
}

void DeviceMemory::freshen(PoolBuffer& buffer, uint64_t done) {
  const std::scoped_lock lock(mutex_);
  if (buffer.seen_by_ops() || buffer.ticket() <= done) return;
  for (Block& kept : cache_) {
    if (kept.bytes == buffer.block_.bytes && kept.ticket <= done) {
      std::swap(kept, buffer.block_);
      return;
    }
  }
}

MemoryInfo DeviceMemory::info() const {
  MemoryInfo info = free_memory(device_, pool_);
  const std::scoped_lock lock(mutex_);
  info.free = std::min(info.total, info.free + cached_);
  info.used = used_;
  info.peak = peak_;
  return info;
}

void DeviceMemory::empty_cache() {
  const std::scoped_lock lock(mutex_);
  while (!cache_.empty()) drop_front();
}

}  // namespace quintet::opencl
