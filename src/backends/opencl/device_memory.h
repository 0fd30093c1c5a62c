// The memory of one OpenCL device: counted, and kept for reuse, so that a run allocates only in its
// first moments. Buffers may be dropped on any thread and outlive the session.
//
// Ops run in order, so a block may go to the next tensor while ops that use it are still queued;
// only what runs beside them has to know: the ticket of a block says which ops came before it was
// given back.
#ifndef QUINTET_BACKENDS_OPENCL_DEVICE_MEMORY_H_
#define QUINTET_BACKENDS_OPENCL_DEVICE_MEMORY_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>

#include "backends/opencl/platforms.h"
#include "backends/opencl/session.h"

namespace quintet::opencl {

// NOLINTNEXTLINE(bugprone-exception-escape): OpenCL's handles are released with a check
struct Block {
  cl::Buffer memory;
  size_t bytes = 0;
  uint64_t ticket = 0;  // ops enqueued before it was given back; 0: it was never used
};

class PoolBuffer;

class DeviceMemory : public std::enable_shared_from_this<DeviceMemory> {
 public:
  // commit: makes the driver really allocate what clCreateBuffer may only have promised.
  DeviceMemory(const FoundDevice& device, cl::Context context,
               std::function<void(const cl::Buffer&)> commit);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // Throws Error(kMemory) that says what was wanted, what is free and how large a buffer may be.
  std::shared_ptr<PoolBuffer> allocate(size_t bytes, const std::string& what);
  // Exchanges the block of a buffer that no op has seen for one that earlier ops have done with,
  // where one as large is kept. `done`: the ticket up to which ops are done.
  void freshen(PoolBuffer& buffer, uint64_t done);
  MemoryInfo info() const;
  void empty_cache();

  // Every op enqueued from now on has a larger ticket.
  void count_op() { ++ops_; }
  uint64_t ops() const { return ops_; }

 private:
  friend class PoolBuffer;
  Block take(size_t bytes, const std::string& what);
  Block create(size_t bytes, const std::string& what);
  void give_back(Block block);
  void drop_front();
  void count_use(size_t bytes);

  const std::string name_;
  const std::string pool_;
  const cl::Device device_;
  const cl::Context context_;
  const size_t largest_;
  std::function<void(const cl::Buffer&)> commit_;
  std::atomic<uint64_t> ops_ = 1;
  mutable std::mutex mutex_;
  size_t used_ = 0;
  size_t peak_ = 0;
  size_t cached_ = 0;
  std::list<Block> cache_;  // oldest first; live and cached blocks together stay within peak_
};

class PoolBuffer final : public DeviceBuffer {
 public:
  PoolBuffer(std::shared_ptr<DeviceMemory> pool, Block block, size_t bytes)
      : pool_(std::move(pool)), block_(std::move(block)), bytes_(bytes) {}
  ~PoolBuffer() override { pool_->give_back(std::move(block_)); }
  PoolBuffer(const PoolBuffer&) = delete;
  PoolBuffer& operator=(const PoolBuffer&) = delete;

  size_t bytes() const override { return bytes_; }
  // For ops: from then on uploads wait for what was enqueued before them.
  const cl::Buffer& memory() const override {
    seen_ = true;
    return block_.memory;
  }
  // For copies beside the ops.
  const cl::Buffer& memory_for_copies() const { return block_.memory; }
  bool seen_by_ops() const { return seen_; }
  uint64_t ticket() const { return block_.ticket; }

 private:
  friend class DeviceMemory;
  std::shared_ptr<DeviceMemory> pool_;
  Block block_;
  size_t bytes_;
  mutable std::atomic<bool> seen_ = false;
};

}  // namespace quintet::opencl

#endif  // QUINTET_BACKENDS_OPENCL_DEVICE_MEMORY_H_
