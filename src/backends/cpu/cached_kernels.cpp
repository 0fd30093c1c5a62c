// Softmax attention of single query rows over keys and values in pages, compiled per instruction
// set. attention_kernels.cpp has query rows in the lanes of its vectors, here they are first keys,
// then columns of the context; but each number is the same chain of the same operations, over the
// same key blocks, so that the bits are those.
#include "backends/cpu/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/cached_kernels.cpp"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <algorithm>
#include <limits>

#include "backends/cpu/decoding_kernels.h"
#include "backends/cpu/math-inl.h"
#include "backends/cpu/micro_kernel-inl.h"
#include "backends/cpu/thread_pool.h"
#include "core/step_batch.h"

HWY_BEFORE_NAMESPACE();
namespace quintet {
namespace HWY_NAMESPACE {
namespace {

using D8 = hn::CappedTag<float, kGroupKeys>;
using V8 = hn::Vec<D8>;

constexpr size_t kPage = kPageTokens;
constexpr size_t kBlockPages = 5;  // attention_kernels.cpp's kBlockKeys
constexpr size_t kBlockKeys = kBlockPages * kPage;
constexpr size_t kPageGroups = kPage / kGroupKeys;
constexpr size_t kSpanRows = 16;
constexpr int kMaxVecs = 8;  // sums at a time: enough to hide the latency of a multiply-add

// What is known of a query after some key blocks.
struct Row {
  float* q;        // [d_kv], scaled
  float* context;  // [d_kv rounded up to whole vectors], not yet divided by `sum`
  float max;
  float sum;
};

struct Block {
  size_t key;     // first key
  size_t n_keys;  // that the row sees
  size_t n_groups;
  const float* keys[kBlockKeys / kGroupKeys];  // of each group
  const float* values[kBlockPages];            // of each page
  float* scores;                               // [kBlockKeys], then exp(score - max)
};

// scores[kGroups * 8] = keys of the groups times q
template <int kGroups>
void score_groups(const float* const* groups, const float* q, size_t d_kv, float* scores) {
  const D8 d;
  V8 sums[kGroups];
  const float* from[kGroups];
  repeat<kGroups>([&](auto g) QUINTET_LAMBDA {
    sums[g] = hn::Zero(d);
    from[g] = groups[g];
  });
  for (size_t k = 0; k < d_kv; ++k) {
    const V8 number = hn::Set(d, q[k]);
    repeat<kGroups>([&](auto g) QUINTET_LAMBDA {
      sums[g] = hn::MulAdd(hn::Load(d, from[g] + k * kGroupKeys), number, sums[g]);
    });
  }
  repeat<kGroups>([&](auto g) QUINTET_LAMBDA { hn::Store(sums[g], d, scores + g * kGroupKeys); });
}

// kVecs vectors of columns: context = context * factor + shares * values; with kSum the shares are
// also added up, from `sum` on.
template <int kVecs, bool kSum>
float add_values(const Block& block, size_t column, size_t d_kv, float factor, float sum,
                 float* context) {
  const D8 d;
  V8 sums[kVecs];
  V8 total = hn::Set(d, sum);
  repeat<kVecs>([&](auto v) QUINTET_LAMBDA {
    const V8 before = hn::Load(d, context + column + v * kGroupKeys);
    sums[v] = block.key == 0 ? hn::Zero(d) : hn::Mul(before, hn::Set(d, factor));
  });
  for (size_t j = 0; j < block.n_keys;) {
    const float* from = block.values[j / kPage] + column;
    const size_t end = std::min(block.n_keys, j + kPage);
    for (; j < end; ++j, from += d_kv) {
      const V8 share = hn::Set(d, block.scores[j]);
      if constexpr (kSum) total = hn::Add(total, share);
      repeat<kVecs>([&](auto v) QUINTET_LAMBDA {
        sums[v] = hn::MulAdd(hn::LoadU(d, from + v * kGroupKeys), share, sums[v]);
      });
    }
  }
  repeat<kVecs>([&](auto v)
                    QUINTET_LAMBDA { hn::Store(sums[v], d, context + column + v * kGroupKeys); });
  return hn::GetLane(total);
}

using ScoreGroups = void (*)(const float* const*, const float*, size_t, float*);
using AddValues = float (*)(const Block&, size_t, size_t, float, float, float*);

template <int... kI>
ScoreGroups score_groups_for(int n, std::integer_sequence<int, kI...>) {
  static constexpr ScoreGroups kTable[] = {&score_groups<kI + 1>...};
  return kTable[n - 1];
}
template <bool kSum, int... kI>
AddValues add_values_for(int n, std::integer_sequence<int, kI...>) {
  static constexpr AddValues kTable[] = {&add_values<kI + 1, kSum>...};
  return kTable[n - 1];
}
using UpToMaxVecs = std::make_integer_sequence<int, kMaxVecs>;

void fill_block(const CachedSpan& span, size_t key, size_t n_keys, Block& block) {
  block.key = key;
  block.n_keys = n_keys;
  block.n_groups = (n_keys + kGroupKeys - 1) / kGroupKeys;
  const int32_t* pages = span.pages + key / kPage;
  for (size_t p = 0; p * kPage < n_keys; ++p) {
    block.values[p] = span.head + pages[p] * span.page_stride;
  }
  for (size_t g = 0; g < block.n_groups; ++g) {
    block.keys[g] =
        block.values[g / kPageGroups] + (kPage + g % kPageGroups * kGroupKeys) * span.d_kv;
  }
}

// The first n of a vector's numbers, zeros behind them.
HWY_INLINE V8 load_up_to(const float* from, ptrdiff_t n) {
  const D8 d;
  if (n >= static_cast<ptrdiff_t>(kGroupKeys)) return hn::LoadU(d, from);
  HWY_ALIGN float part[kGroupKeys] = {};
  std::copy_n(from, n, part);
  return hn::Load(d, part);
}

// scores = q k^T + bias; those behind the last key are -infinity.
void score_block(const CachedSpan& span, const Row& row, size_t position, const Block& block) {
  const D8 d;
  for (size_t g = 0; g < block.n_groups;) {
    // Halves of about one size: a few sums alone would wait for one another.
    const size_t left = block.n_groups - g;
    const size_t n = left > kMaxVecs ? (left + 1) / 2 : left;
    score_groups_for(static_cast<int>(n), UpToMaxVecs())(block.keys + g, row.q, span.d_kv,
                                                         block.scores + g * kGroupKeys);
    g += n;
  }
  if (span.bias != nullptr) {
    const ptrdiff_t nearest = static_cast<ptrdiff_t>(block.key) - static_cast<ptrdiff_t>(position);
    for (size_t j = 0; j < block.n_keys; j += kGroupKeys) {
      const ptrdiff_t distance = nearest + static_cast<ptrdiff_t>(j);
      const V8 bias = load_up_to(span.bias + distance, span.bias_end - distance);
      hn::Store(hn::Add(hn::Load(d, block.scores + j), bias), d, block.scores + j);
    }
  }
  std::fill(block.scores + block.n_keys, block.scores + block.n_groups * kGroupKeys,
            -std::numeric_limits<float>::infinity());
}

void attend_block(const CachedSpan& span, size_t position, const Block& block, Row& row) {
  const D8 d;
  score_block(span, row, position, block);
  V8 max = hn::Set(d, row.max);
  for (size_t g = 0; g < block.n_groups; ++g) {
    max = hn::Max(max, hn::Load(d, block.scores + g * kGroupKeys));
  }
  max = hn::MaxOfLanes(d, max);
  const float factor = hn::GetLane(exp_below_limit(d, hn::Sub(hn::Set(d, row.max), max)));
  row.max = hn::GetLane(max);
  for (size_t g = 0; g < block.n_groups; ++g) {
    float* score = block.scores + g * kGroupKeys;
    hn::Store(exp_below_limit(d, hn::Sub(hn::Load(d, score), max)), d, score);
  }
  const size_t n_vecs = (span.d_kv + kGroupKeys - 1) / kGroupKeys;
  row.sum *= factor;
  for (size_t v = 0; v < n_vecs; v += kMaxVecs) {
    const int n = static_cast<int>(std::min<size_t>(kMaxVecs, n_vecs - v));
    const size_t column = v * kGroupKeys;
    if (v == 0) {
      row.sum = add_values_for<true>(n, UpToMaxVecs())(block, column, span.d_kv, factor, row.sum,
                                                       row.context);
    } else {
      add_values_for<false>(n, UpToMaxVecs())(block, column, span.d_kv, factor, 0.0F, row.context);
    }
  }
}

// y = context / sum; a negative zero becomes positive, as in attention_kernels.cpp.
void store_row(const Row& row, size_t d_kv, float* y) {
  const D8 d;
  const V8 factor = hn::Div(hn::Set(d, 1.0F), hn::Set(d, row.sum));
  for (size_t k = 0; k < d_kv; k += kGroupKeys) {
    const V8 out = hn::MulAdd(hn::Load(d, row.context + k), factor, hn::Zero(d));
    if (k + kGroupKeys <= d_kv) {
      hn::StoreU(out, d, y + k);
    } else {
      HWY_ALIGN float last[kGroupKeys];
      hn::Store(out, d, last);
      std::copy_n(last, d_kv - k, y + k);
    }
  }
}

void cached_span(const CachedSpan& span) {
  const size_t width = (span.d_kv + kGroupKeys - 1) / kGroupKeys * kGroupKeys;
  auto* scratch = reinterpret_cast<float*>(
      thread_scratch((kBlockKeys + 2 * width * span.n_queries) * sizeof(float)));
  Block block;
  block.scores = scratch;
  Row rows[kSpanRows];
  size_t most_keys = 0;
  for (size_t i = 0; i < span.n_queries; ++i) {
    Row& row = rows[i];
    row.q = scratch + kBlockKeys + 2 * width * i;
    row.context = row.q + width;
    row.max = -std::numeric_limits<float>::infinity();
    row.sum = 0.0F;
    for (size_t k = 0; k < span.d_kv; ++k) row.q[k] = span.queries[i].q[k] * span.scale;
    most_keys = std::max(most_keys, span.queries[i].n_keys);
  }
  for (size_t key = 0; key < most_keys; key += kBlockKeys) {
    for (size_t i = 0; i < span.n_queries; ++i) {
      const size_t n_keys = span.queries[i].n_keys;
      if (key >= n_keys) continue;
      fill_block(span, key, std::min(kBlockKeys, n_keys - key), block);
      attend_block(span, n_keys - 1, block, rows[i]);
    }
  }
  for (size_t i = 0; i < span.n_queries; ++i) store_row(rows[i], span.d_kv, span.queries[i].y);
}

}  // namespace

const CachedKernels& cached_kernel_table() {
  static constexpr CachedKernels kTable{.span_rows = kSpanRows, .span = &cached_span};
  return kTable;
}

}  // namespace HWY_NAMESPACE
}  // namespace quintet
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quintet {

const CachedKernels& cached_kernels(Isa isa) {
  return isa == Isa::kAvx512 ? N_AVX3::cached_kernel_table() : N_AVX2::cached_kernel_table();
}

}  // namespace quintet
#endif  // HWY_ONCE
