// Keys and values kept in pages, and attention of single rows over them.
#ifndef QUINTET_OPS_CACHED_H_
#define QUINTET_OPS_CACHED_H_

#include <cstdint>
#include <memory>
#include <span>

#include "backends/device.h"
#include "core/step_batch.h"
#include "core/tensor.h"

namespace quintet::ops {

// n_pages * shape.bytes_per_page() bytes, at once; contents are undefined. Throws Error(kMemory).
std::unique_ptr<KvCache> make_kv_cache(Device& device, const KvShape& shape, int64_t n_pages);

// In their order.
void kv_copy(Device& device, std::span<const PageCopy> copies, KvCache& cache);

// Keeps row i of k and v, [slots.size(), n_heads * d_kv], in slots[i]; -1: nowhere. No slot may
// come twice.
void kv_write(Device& device, const Tensor& k, const Tensor& v, std::span<const int32_t> slots,
              KvCache& cache);

// Row i of q attends to the first pages.n_keys[i] keys of its table, into row i of y; both
// [n_rows, n_heads * d_kv], y may be q. position_bias: [n_heads, 2 * m - 1] for any m from the
// largest n_keys on, or empty: none. args' heads are those of the cache.
void cached_attention(Device& device, const Tensor& q, const KvCache& cache, const PageTable& pages,
                      const Tensor& position_bias, const AttentionArgs& args, const Tensor& y);

}  // namespace quintet::ops

#endif  // QUINTET_OPS_CACHED_H_
