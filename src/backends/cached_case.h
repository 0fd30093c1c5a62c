// One sequence of which every row is a query: by attention() with causal, and, its keys kept in
// pages, by cached_attention(). For tests.
#ifndef QUINTET_BACKENDS_CACHED_CASE_H_
#define QUINTET_BACKENDS_CACHED_CASE_H_

#include <cstdint>
#include <numeric>
#include <vector>

#include "backends/contract.h"
#include "backends/device.h"

namespace quintet {

struct CachedCase {
  int64_t length = 1;
  AttentionArgs args;
  bool bias = false;

  int64_t inner() const { return args.n_heads * args.d_kv; }
  int64_t n_pages() const { return (length + kPageTokens - 1) / kPageTokens; }

  // Columns of one tensor, as a stacked product leaves them.
  Tensor put_qkv(Device& device) const {
    const Tensor all = device.allocate(length, 3 * inner());
    device.upload(numbers(static_cast<size_t>(length * 3 * inner()), 21).data(), all);
    return all;
  }
  Tensor put_bias(Device& device) const {
    if (!bias) return {};
    const int64_t cols = 2 * length - 1;  // as few as there may be
    const Tensor table = device.allocate(args.n_heads, cols);
    device.upload(numbers(static_cast<size_t>(args.n_heads * cols), 22).data(), table);
    return table;
  }

  std::vector<float> whole(Device& device) const {
    const Tensor qkv = put_qkv(device);
    const Tensor y = device.allocate(length, inner());
    AttentionArgs causal = args;
    causal.causal = true;
    device.attention(qkv.columns(0, inner()), qkv.columns(inner(), inner()),
                     qkv.columns(2 * inner(), inner()), put_bias(device),
                     make_batch({static_cast<int>(length)}), 0, causal, y);
    return get(device, y);
  }

  // Pages from the last to the first, in a cache that has some more; all rows share the table, or
  // each has its own copy of it. In place.
  std::vector<float> cached(Device& device, bool one_table) const {
    const Tensor qkv = put_qkv(device);
    const auto cache = device.make_kv_cache({args.n_heads, args.d_kv}, n_pages() + 2);
    std::vector<int32_t> slots;
    for (int64_t i = 0; i < length; ++i) slots.push_back(slot(i));
    device.kv_write(qkv.columns(inner(), inner()), qkv.columns(2 * inner(), inner()), slots,
                    *cache);
    PageTable table;
    table.n_keys.resize(static_cast<size_t>(length));
    std::iota(table.n_keys.begin(), table.n_keys.end(), 1);
    for (int32_t t = 0; t < (one_table ? 1 : length); ++t) {
      for (int64_t page = 0; page < n_pages(); ++page) {
        table.pages.push_back(slot(page * kPageTokens) / kPageTokens);
      }
      table.begin.push_back(static_cast<int32_t>(table.pages.size()));
    }
    table.table.resize(static_cast<size_t>(length));
    if (!one_table) std::iota(table.table.begin(), table.table.end(), 0);
    const Tensor q = qkv.columns(0, inner());
    device.cached_attention(q, *cache, table, put_bias(device), args, q);
    return get(device, q);
  }

 private:
  int32_t slot(int64_t token) const {
    const int64_t page = n_pages() - token / kPageTokens;
    return static_cast<int32_t>(page * kPageTokens + token % kPageTokens);
  }
  static std::vector<float> get(Device& device, const Tensor& tensor) {
    device.wait();
    std::vector<float> values(static_cast<size_t>(tensor.rows() * tensor.cols()));
    device.download(tensor, values.data());
    return values;
  }
};

}  // namespace quintet

#endif  // QUINTET_BACKENDS_CACHED_CASE_H_
