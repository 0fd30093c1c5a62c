// The CPU device's ops for decoding: caches of keys and values, and the choice of tokens.
#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>
#include <vector>

#include "backends/cpu/cpu_device.h"
#include "backends/cpu/kv_cache.h"

namespace quintet {

std::unique_ptr<KvCache> CpuDevice::make_kv_cache(const KvShape& shape, int64_t n_pages) {
  assert(n_pages >= 0 && shape.n_heads > 0 && shape.d_kv > 0);
  return std::make_unique<CpuKvCache>(shape, n_pages, *memory_, this);
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

void CpuDevice::log_softmax(const Tensor& x) {
  for (int64_t i = 0; i < x.rows(); ++i) {
    const std::span<float> row(x.row<float>(i), static_cast<size_t>(x.cols()));
    const float highest = *std::max_element(row.begin(), row.end());
    double sum = 0;
    for (const float value : row) sum += std::exp(double{value} - highest);
    for (float& value : row) value = static_cast<float>(double{value} - highest - std::log(sum));
  }
}

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
  std::vector<int32_t> order(static_cast<size_t>(x.cols()));
  for (int64_t i = 0; i < x.rows(); ++i) {
    const float* row = x.row<float>(i);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      return std::isnan(row[b]) ? !std::isnan(row[a]) : row[a] > row[b];
    });
    for (int64_t j = 0; j < k; ++j) {
      const int32_t id = order[static_cast<size_t>(j)];
      ids[static_cast<size_t>(i * k + j)] = id;
      values[static_cast<size_t>(i * k + j)] = row[id];
    }
  }
}

void CpuDevice::pick(const Tensor& x, std::span<const int32_t> rows,
                     std::span<const int32_t> columns, std::span<float> values) {
  for (size_t i = 0; i < rows.size(); ++i) values[i] = x.row<float>(rows[i])[columns[i]];
}

}  // namespace quintet
