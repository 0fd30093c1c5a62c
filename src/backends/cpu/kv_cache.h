// Keys and values of one block on a CPU device, and what is done with them.
#ifndef QUINTET_BACKENDS_CPU_KV_CACHE_H_
#define QUINTET_BACKENDS_CPU_KV_CACHE_H_

#include <memory>
#include <span>

#include "backends/cpu/cpu_memory.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/thread_pool.h"
#include "backends/device.h"

namespace quintet {

class CpuKvCache final : public KvCache {
 public:
  // All of its memory is there at once, written to by the pool's threads: no step waits for the
  // system to find and clear pages, and what is planned is what is used.
  CpuKvCache(const KvShape& shape, int64_t n_pages, CpuMemory& memory, ThreadPool& pool,
             const void* owner);

  KvShape shape() const override { return shape_; }
  int64_t n_pages() const override { return n_pages_; }
  size_t bytes() const override { return buffer_->bytes(); }
  const void* owner() const override { return owner_; }

  // Of one head in one page. Values lie as [kPageTokens][d_kv], the lanes of a vector being
  // columns; keys behind them as [kPageTokens / kGroupKeys][d_kv][kGroupKeys], the lanes being
  // keys. What a vector reads past the last column of a value is thus never past the end of the
  // cache.
  float* values(int64_t page, int64_t head) const {
    return data_ + page * page_floats() + head * 2 * kPageTokens * shape_.d_kv;
  }
  float* keys(int64_t page, int64_t head) const {
    return values(page, head) + kPageTokens * shape_.d_kv;
  }
  int64_t page_floats() const { return 2 * kPageTokens * shape_.n_heads * shape_.d_kv; }

 private:
  KvShape shape_;
  int64_t n_pages_;
  std::shared_ptr<Buffer> buffer_;
  float* data_;
  const void* owner_;
};

void run_kv_copy(std::span<const PageCopy> copies, const CpuKvCache& cache, ThreadPool& pool);
void run_kv_write(const Tensor& k, const Tensor& v, std::span<const int32_t> slots,
                  const CpuKvCache& cache, ThreadPool& pool);
void run_cached_attention(const Tensor& q, const CpuKvCache& cache, const PageTable& pages,
                          const Tensor& position_bias, const AttentionArgs& args, const Tensor& y,
                          Isa isa, ThreadPool& pool);

}  // namespace quintet

#endif  // QUINTET_BACKENDS_CPU_KV_CACHE_H_
