// The CPU device's ops for decoding: caches of keys and values, and the choice of tokens.
#include <algorithm>
#include <cassert>

#include "backends/cpu/cpu_device.h"
#include "backends/cpu/kv_cache.h"
#include "backends/cpu/logits.h"

namespace quintet {

std::unique_ptr<KvCache> CpuDevice::make_kv_cache(const KvShape& shape, int64_t n_pages) {
  assert(n_pages >= 0 && shape.n_heads > 0 && shape.d_kv > 0);
  return std::make_unique<CpuKvCache>(shape, n_pages, *memory_, pool_, this);
}

void CpuDevice::kv_copy(std::span<const PageCopy> copies, KvCache& cache) {
  run_kv_copy(copies, dynamic_cast<const CpuKvCache&>(cache), pool_);
}

void CpuDevice::kv_write(const Tensor& k, const Tensor& v, std::span<const int32_t> slots,
                         KvCache& cache) {
  assert(k.rows() == static_cast<int64_t>(slots.size()) && v.rows() == k.rows());
  run_kv_write(k, v, slots, dynamic_cast<const CpuKvCache&>(cache), pool_);
}

void CpuDevice::cached_attention(const Tensor& q, const KvCache& cache, const PageTable& pages,
                                 const Tensor& position_bias, const AttentionArgs& args,
                                 const Tensor& y) {
  assert(q.rows() == y.rows() && q.rows() == static_cast<int64_t>(pages.n_keys.size()));
  run_cached_attention(q, dynamic_cast<const CpuKvCache&>(cache), pages, position_bias, args, y,
                       isa_, pool_);
}

void CpuDevice::log_softmax(const Tensor& x) { run_log_softmax(x, isa_, pool_); }

void CpuDevice::edit(std::span<const LogitEdit> edits, const Tensor& x) {
  for (const LogitEdit& change : edits) {
    float* row = x.row<float>(change.row);
    if (change.kind == LogitEdit::Kind::kFillRow) {
      std::fill_n(row, x.cols(), change.value);
    } else if (change.kind == LogitEdit::Kind::kSet) {
      row[change.token] = change.value;
    } else {
      const float before = row[change.token];
      row[change.token] = before < 0 ? before * change.value : before / change.value;
    }
  }
}

void CpuDevice::top_k(const Tensor& x, int64_t k, std::span<int32_t> ids, std::span<float> values) {
  assert(k <= x.cols() && static_cast<int64_t>(ids.size()) == x.rows() * k);
  assert(values.size() == ids.size());
  run_top_k(x, k, ids, values, isa_, pool_);
}

void CpuDevice::pick(const Tensor& x, std::span<const int32_t> rows,
                     std::span<const int32_t> columns, std::span<float> values) {
  for (size_t i = 0; i < rows.size(); ++i) values[i] = x.row<float>(rows[i])[columns[i]];
}

}  // namespace quintet
