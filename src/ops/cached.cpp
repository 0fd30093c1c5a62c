#include "ops/cached.h"

#include <algorithm>
#include <limits>

#include "core/error.h"
#include "ops/checks.h"

namespace quintet::ops {
namespace {

constexpr auto kAttention = "cached_attention";

void check_table(const PageTable& pages, int64_t n_rows, int64_t n_pages) {
  const auto& begin = pages.begin;
  if (begin.empty() || begin.front() != 0 ||
      begin.back() != static_cast<int64_t>(pages.pages.size()) ||
      !std::is_sorted(begin.begin(), begin.end())) {
    fail(ErrorKind::kUsage, "{}: the tables do not share out their {} pages", kAttention,
         pages.pages.size());
  }
  const auto rows = static_cast<size_t>(n_rows);
  if (pages.table.size() != rows || pages.n_keys.size() != rows) {
    fail(ErrorKind::kUsage, "{}: {} rows have {} tables and {} numbers of keys", kAttention, n_rows,
         pages.table.size(), pages.n_keys.size());
  }
  check_indices(kAttention, "page", pages.pages, n_pages);
  check_indices(kAttention, "table", pages.table, static_cast<int64_t>(begin.size()) - 1);
  for (size_t i = 0; i < rows; ++i) {
    const auto table = static_cast<size_t>(pages.table[i]);
    const int64_t room = int64_t{kPageTokens} * (begin[table + 1] - begin[table]);
    if (pages.n_keys[i] < 1 || pages.n_keys[i] > room) {
      fail(ErrorKind::kUsage, "{}: row {} has {} keys, its table has room for {}", kAttention, i,
           pages.n_keys[i], room);
    }
  }
}

void check_bias(const Device& device, const Tensor& position_bias, const PageTable& pages,
                const AttentionArgs& args) {
  if (!position_bias) return;
  check_placement(kAttention, "position_bias", device, position_bias);
  check_shape(kAttention, "position_bias", position_bias, args.n_heads, position_bias.cols());
  const int64_t most = *std::max_element(pages.n_keys.begin(), pages.n_keys.end());
  if (position_bias.cols() % 2 == 0 || position_bias.cols() < 2 * most - 1) {
    fail(ErrorKind::kUsage, "{}: position_bias has {} columns, expected an odd number from {} on",
         kAttention, position_bias.cols(), 2 * most - 1);
  }
}

}  // namespace

std::unique_ptr<KvCache> make_kv_cache(Device& device, const KvShape& shape, int64_t n_pages) {
  // Slots are numbered in 32 bits.
  constexpr int64_t kMostPages = std::numeric_limits<int32_t>::max() / kPageTokens;
  constexpr int64_t kMostWidth = int64_t{1} << 24;
  if (shape.n_heads < 1 || shape.d_kv < 1 || shape.n_heads > kMostWidth / shape.d_kv) {
    fail(ErrorKind::kUsage, "make_kv_cache: {} heads of {} numbers", shape.n_heads, shape.d_kv);
  }
  if (n_pages < 0 || n_pages > kMostPages) {
    fail(ErrorKind::kUsage, "make_kv_cache: {} pages, expected 0 .. {}", n_pages, kMostPages);
  }
  return device.make_kv_cache(shape, n_pages);
}

void kv_copy(Device& device, std::span<const PageCopy> copies, KvCache& cache) {
  check_placement("kv_copy", "the cache", device, cache);
  for (const PageCopy& copy : copies) {
    const bool there =
        copy.from >= 0 && copy.from < cache.n_pages() && copy.to >= 0 && copy.to < cache.n_pages();
    if (!there || copy.n_tokens < 0 || copy.n_tokens > kPageTokens) {
      fail(ErrorKind::kUsage, "kv_copy: {} tokens of page {} to page {}; the cache has {} pages",
           copy.n_tokens, copy.from, copy.to, cache.n_pages());
    }
  }
  if (!copies.empty()) device.kv_copy(copies, cache);
}

void kv_write(Device& device, const Tensor& k, const Tensor& v, std::span<const int32_t> slots,
              KvCache& cache) {
  constexpr auto kName = "kv_write";
  const int64_t n = static_cast<int64_t>(slots.size());
  const int64_t inner = cache.shape().n_heads * cache.shape().d_kv;
  check_placement(kName, "the cache", device, cache);
  if (n == 0) return;
  check_shape(kName, "k", k, n, inner);
  check_shape(kName, "v", v, n, inner);
  check_placement(kName, "k", device, k);
  check_placement(kName, "v", device, v);
  const int64_t end = kPageTokens * cache.n_pages();
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i] < -1 || slots[i] >= end) {
      fail(ErrorKind::kUsage, "{}: slot {} of row {} is outside -1 .. {}", kName, slots[i], i,
           end - 1);
    }
  }
  device.kv_write(k, v, slots, cache);
}

void cached_attention(Device& device, const Tensor& q, const KvCache& cache, const PageTable& pages,
                      const Tensor& position_bias, const AttentionArgs& args, const Tensor& y) {
  if (q.rows() == 0) return;
  const KvShape shape = cache.shape();
  if (args.n_heads != shape.n_heads || args.d_kv != shape.d_kv) {
    fail(ErrorKind::kUsage, "{}: {} heads of {}, the cache has {} of {}", kAttention, args.n_heads,
         args.d_kv, shape.n_heads, shape.d_kv);
  }
  check_placement(kAttention, "the cache", device, cache);
  check_placement(kAttention, "q", device, q);
  check_placement(kAttention, "y", device, y);
  check_shape(kAttention, "q", q, q.rows(), shape.n_heads * shape.d_kv);
  check_shape(kAttention, "y", y, q.rows(), q.cols());
  check_table(pages, q.rows(), cache.n_pages());
  check_bias(device, position_bias, pages, args);
  device.cached_attention(q, cache, pages, position_bias, args, y);
}

}  // namespace quintet::ops
