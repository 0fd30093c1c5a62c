// Memory of a CPU device: counted, large blocks on huge pages and kept for reuse.
#ifndef QUINTET_BACKENDS_CPU_CPU_MEMORY_H_
#define QUINTET_BACKENDS_CPU_CPU_MEMORY_H_

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <string>

#include "backends/device.h"
#include "core/tensor.h"

namespace quintet {

class CpuMemory : public std::enable_shared_from_this<CpuMemory> {
 public:
  explicit CpuMemory(std::string device) : device_(std::move(device)) {}
  ~CpuMemory();

  // A buffer aligned to 64 bytes (large ones to 2 MiB), contents undefined; it may outlive the
  // device. Throws Error(kMemory) that says what was asked for and what is free.
  std::shared_ptr<Buffer> allocate(size_t bytes);
  MemoryInfo info() const;
  void empty_cache();

 private:
  friend class CpuBuffer;
  struct Block {
    std::byte* data = nullptr;
    size_t bytes = 0;
  };
  Block take(size_t bytes);
  void give_back(Block block);
  Block map(size_t size) const;
  static void unmap(Block block);

  const std::string device_;
  mutable std::mutex mutex_;
  size_t used_ = 0;
  size_t peak_ = 0;
  size_t cached_ = 0;
  std::list<Block> cache_;  // oldest first; live and cached blocks together stay within peak_
};

}  // namespace quintet

#endif  // QUINTET_BACKENDS_CPU_CPU_MEMORY_H_
