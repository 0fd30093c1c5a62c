#include "backends/cpu/kv_cache.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <vector>

#include "backends/cpu/kernels.h"

namespace quintet {
namespace {

constexpr int64_t kGroupKeys = 8;  // keys side by side

}  // namespace

CpuKvCache::CpuKvCache(const KvShape& shape, int64_t n_pages, CpuMemory& memory, const void* owner)
    : shape_(shape),
      n_pages_(n_pages),
      buffer_(memory.allocate(static_cast<size_t>(n_pages * shape.bytes_per_page()))),
      data_(static_cast<float*>(buffer_->host())),
      owner_(owner) {}

// Each item copies its head's part of all pages in order.
void run_kv_copy(std::span<const PageCopy> copies, const CpuKvCache& cache, ThreadPool& pool) {
  if (copies.empty()) return;
  const int64_t d_kv = cache.shape().d_kv;
  pool.parallel_for(cache.shape().n_heads, [&](int64_t head) {
    for (const PageCopy& copy : copies) {
      const int64_t groups = (copy.n_tokens + kGroupKeys - 1) / kGroupKeys;
      std::copy_n(cache.keys(copy.from, head), groups * kGroupKeys * d_kv,
                  cache.keys(copy.to, head));
      std::copy_n(cache.values(copy.from, head), copy.n_tokens * d_kv, cache.values(copy.to, head));
    }
  });
}

void run_kv_write(const Tensor& k, const Tensor& v, std::span<const int32_t> slots,
                  const CpuKvCache& cache, ThreadPool& pool) {
  const int64_t n_heads = cache.shape().n_heads;
  const int64_t d_kv = cache.shape().d_kv;
  pool.parallel_for(static_cast<int64_t>(slots.size()), [&](int64_t i) {
    const int32_t slot = slots[static_cast<size_t>(i)];
    if (slot < 0) return;
    const int64_t page = slot / kPageTokens;
    const int64_t place = slot % kPageTokens;
    for (int64_t head = 0; head < n_heads; ++head) {
      const float* key = k.row<float>(i) + head * d_kv;
      float* to = cache.keys(page, head) + place / kGroupKeys * kGroupKeys * d_kv;
      for (int64_t d = 0; d < d_kv; ++d) to[d * kGroupKeys + place % kGroupKeys] = key[d];
      std::copy_n(v.row<float>(i) + head * d_kv, d_kv, cache.values(page, head) + place * d_kv);
    }
  });
}

void run_cached_attention(const Tensor& q, const CpuKvCache& cache, const PageTable& pages,
                          const Tensor& position_bias, const AttentionArgs& args, const Tensor& y,
                          Isa isa, ThreadPool& pool) {
  const int64_t d_kv = args.d_kv;
  pool.parallel_for(q.rows() * args.n_heads, [&](int64_t item) {
    const int64_t row = item / args.n_heads;
    const int64_t head = item % args.n_heads;
    const int32_t n_keys = pages.n_keys[static_cast<size_t>(row)];
    const int32_t* table = pages.pages.data() +
                           pages.begin[static_cast<size_t>(pages.table[static_cast<size_t>(row)])];
    std::vector<float> keys(static_cast<size_t>(n_keys * d_kv));
    std::vector<float> values(keys.size());
    std::vector<int32_t> positions(static_cast<size_t>(n_keys));
    std::iota(positions.begin(), positions.end(), 0);
    for (int64_t j = 0; j < n_keys; ++j) {
      const int64_t page = table[j / kPageTokens];
      const int64_t place = j % kPageTokens;
      const float* from = cache.keys(page, head) + place / kGroupKeys * kGroupKeys * d_kv;
      for (int64_t d = 0; d < d_kv; ++d) {
        keys[static_cast<size_t>(j * d_kv + d)] = from[d * kGroupKeys + place % kGroupKeys];
      }
      std::copy_n(cache.values(page, head) + place * d_kv, d_kv, values.data() + j * d_kv);
    }
    attention_kernels(isa).span(
        {.q = {q.row<float>(row) + head * d_kv, q.stride()},
         .k = {keys.data(), d_kv},
         .v = {values.data(), d_kv},
         .y = {y.row<float>(row) + head * d_kv, y.stride()},
         .n_queries = 1,
         .n_keys = static_cast<size_t>(n_keys),
         .d_kv = static_cast<size_t>(d_kv),
         .scale = args.scale,
         .causal = true,
         .bias = position_bias.empty() ? nullptr
                                       : position_bias.row<float>(head) + position_bias.cols() / 2,
         .query_positions = &positions.back(),
         .key_positions = positions.data()});
  });
}

}  // namespace quintet
