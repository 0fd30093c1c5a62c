#include "backends/cpu/kv_cache.h"

#include <algorithm>
#include <cassert>
#include <vector>

#include "backends/cpu/decoding_kernels.h"

namespace quintet {
namespace {

constexpr int64_t kItemsPerThread = 16;  // so that threads end at about the same time

}  // namespace

CpuKvCache::CpuKvCache(const KvShape& shape, int64_t n_pages, CpuMemory& memory, ThreadPool& pool,
                       const void* owner)
    : shape_(shape),
      n_pages_(n_pages),
      buffer_(memory.allocate(static_cast<size_t>(n_pages * shape.bytes_per_page()))),
      data_(static_cast<float*>(buffer_->host())),
      owner_(owner) {
  pool.parallel_for(n_pages, [&](int64_t page) {
    std::fill_n(data_ + page * page_floats(), page_floats(), 0.0F);
  });
}

// Each item copies its head's part of all pages in order.
void run_kv_copy(std::span<const PageCopy> copies, const CpuKvCache& cache, ThreadPool& pool) {
  if (copies.empty()) return;
  const auto d_kv = static_cast<size_t>(cache.shape().d_kv);
  pool.parallel_for(cache.shape().n_heads, [&](int64_t head) {
    for (const PageCopy& copy : copies) {
      const auto n = static_cast<size_t>(copy.n_tokens);
      const size_t in_groups = (n + kGroupKeys - 1) / kGroupKeys * kGroupKeys;
      std::copy_n(cache.values(copy.from, head), n * d_kv, cache.values(copy.to, head));
      std::copy_n(cache.keys(copy.from, head), in_groups * d_kv, cache.keys(copy.to, head));
    }
  });
}

void run_kv_write(const Tensor& k, const Tensor& v, std::span<const int32_t> slots,
                  const CpuKvCache& cache, ThreadPool& pool) {
  const auto d_kv = static_cast<size_t>(cache.shape().d_kv);
  const auto write_row = [&](int64_t row) {
    const int32_t slot = slots[static_cast<size_t>(row)];
    if (slot < 0) return;
    const int64_t page = slot / kPageTokens;
    const auto place = static_cast<size_t>(slot % kPageTokens);
    const float* key = k.row<float>(row);
    const float* value = v.row<float>(row);
    for (int64_t head = 0; head < cache.shape().n_heads; ++head, key += d_kv, value += d_kv) {
      std::copy_n(value, d_kv, cache.values(page, head) + place * d_kv);
      float* to = cache.keys(page, head) + place / kGroupKeys * kGroupKeys * d_kv;
      to += place % kGroupKeys;
      for (size_t d = 0; d < d_kv; ++d) to[d * kGroupKeys] = key[d];
    }
  };
  const auto n = static_cast<int64_t>(slots.size());
  const int64_t n_items = std::min(n, kItemsPerThread * pool.width());
  pool.parallel_for(n_items, [&](int64_t item) {
    for (int64_t row = n * item / n_items; row < n * (item + 1) / n_items; ++row) write_row(row);
  });
}

void run_cached_attention(const Tensor& q, const CpuKvCache& cache, const PageTable& pages,
                          const Tensor& position_bias, const AttentionArgs& args, const Tensor& y,
                          Isa isa, ThreadPool& pool) {
  const CachedKernels& kernels = cached_kernels(isa);
  // Neighbouring rows of one table share a pass over its keys.
  const auto n_rows = static_cast<size_t>(q.rows());
  std::vector<size_t> begin;
  for (size_t row = 0; row < n_rows; ++row) {
    const bool joins = row > 0 && pages.table[row] == pages.table[row - 1] &&
                       row - begin.back() < kernels.span_rows;
    if (!joins) begin.push_back(row);
  }
  const auto n_spans = static_cast<int64_t>(begin.size());
  begin.push_back(n_rows);
  const int64_t zero = position_bias.cols() / 2;  // where the table keeps distance 0
  const auto attend = [&](int64_t head, size_t span) {
    std::vector<CachedQuery> queries;
    for (size_t row = begin[span]; row < begin[span + 1]; ++row) {
      queries.push_back({.q = q.row<float>(static_cast<int64_t>(row)) + head * args.d_kv,
                         .y = y.row<float>(static_cast<int64_t>(row)) + head * args.d_kv,
                         .n_keys = static_cast<size_t>(pages.n_keys[row])});
    }
    const auto table = static_cast<size_t>(pages.table[begin[span]]);
    kernels.span({.queries = queries.data(),
                  .n_queries = queries.size(),
                  .pages = pages.pages.data() + pages.begin[table],
                  .head = cache.values(0, head),
                  .page_stride = cache.page_floats(),
                  .d_kv = static_cast<size_t>(args.d_kv),
                  .scale = args.scale,
                  .bias = position_bias.empty() ? nullptr : position_bias.row<float>(head) + zero,
                  .bias_end = position_bias.cols() - zero});
  };
  // Heads one after the other: rows that share pages then find them in the cache.
  const int64_t n_units = args.n_heads * n_spans;
  const int64_t n_items = std::min(n_units, kItemsPerThread * pool.width());
  pool.parallel_for(n_items, [&](int64_t item) {
    for (int64_t unit = n_units * item / n_items; unit < n_units * (item + 1) / n_items; ++unit) {
      attend(unit / n_spans, static_cast<size_t>(unit % n_spans));
    }
  });
}

}  // namespace quintet
