// Softmax attention streamed over key blocks, compiled per instruction set. Lanes are query rows:
// all reductions run down the keys, so that neither the vector width nor the rows computed next to
// it changes a bit of a row. Scores and context both come from the matrix product's inner loop.
#include "backends/cpu/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/attention_kernels.cpp"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <algorithm>
#include <cstring>
#include <limits>

#include "backends/cpu/kernels.h"
#include "backends/cpu/math-inl.h"
#include "backends/cpu/micro_kernel-inl.h"
#include "backends/cpu/pack-inl.h"
#include "backends/cpu/thread_pool.h"

HWY_BEFORE_NAMESPACE();
namespace quintet {
namespace HWY_NAMESPACE {
namespace {

constexpr size_t kSpanRows = 256;
// Keys of a block, counted from the sequence's start. The same on all machines: it decides where
// sums are rescaled.
constexpr size_t kBlockKeys = 120;
constexpr size_t kFetchEvery = 4;  // keys between two that are fetched ahead
constexpr size_t kGroupRows = 2 * kLanes;

// Query rows that are worked on in the lanes of one or two vectors.
struct Group {
  size_t begin = 0;  // first query
  size_t rows = 0;
  size_t width = 0;              // lanes: kLanes or kGroupRows
  float* q = nullptr;            // [d_kv][width]
  float* context = nullptr;      // [d_kv][width], not yet divided by `sum`
  float* max = nullptr;          // [width]
  float* sum = nullptr;          // [width]
  int32_t* positions = nullptr;  // [width]; lanes past `rows` count on from the last
  bool contiguous = true;        // positions rise by one from lane to lane
};

// Bump allocation inside the thread's scratch; with a null start it only counts.
struct Arena {
  std::byte* start;
  size_t used = 0;
  template <typename T>
  T* take(size_t n) {
    auto* at = reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(start) + used);
    used += (n * sizeof(T) + 63) / 64 * 64;
    return at;
  }
};

struct Work {
  Group groups[kSpanRows / kGroupRows];
  size_t n_groups = 0;
  float* scores = nullptr;   // [kBlockKeys][width]
  float* rescale = nullptr;  // [width]
  float* bias = nullptr;     // bias[i] is of the distance (query - key) i - bias_zero
  ptrdiff_t bias_zero = 0;
};

void lay_out(const AttentionSpan& span, Arena& arena, Work& work) {
  work.n_groups = (span.n_queries + kGroupRows - 1) / kGroupRows;
  for (size_t g = 0; g < work.n_groups; ++g) {
    Group& group = work.groups[g];
    group.begin = g * kGroupRows;
    group.rows = std::min(kGroupRows, span.n_queries - group.begin);
    group.width = group.rows <= kLanes ? kLanes : kGroupRows;
    group.q = arena.take<float>(span.d_kv * group.width);
    group.context = arena.take<float>(span.d_kv * group.width);
    group.max = arena.take<float>(group.width);
    group.sum = arena.take<float>(group.width);
    group.positions = arena.take<int32_t>(group.width);
  }
  work.scores = arena.take<float>(kBlockKeys * kGroupRows);
  work.rescale = arena.take<float>(kGroupRows);
  if (span.bias != nullptr) {
    const ptrdiff_t nearest = span.query_positions[0] - span.key_positions[span.n_keys - 1];
    const ptrdiff_t farthest = span.query_positions[span.n_queries - 1] - span.key_positions[0];
    work.bias_zero = -nearest;
    work.bias = arena.take<float>(static_cast<size_t>(farthest - nearest) + 1 + kGroupRows);
  }
}

// The table turned round, so that neighbouring lanes read neighbouring values.
void fill_bias(const AttentionSpan& span, Work& work) {
  if (span.bias == nullptr) return;
  const ptrdiff_t farthest = span.query_positions[span.n_queries - 1] - span.key_positions[0];
  const ptrdiff_t n = farthest + work.bias_zero + 1;
  for (ptrdiff_t i = 0; i < n; ++i) work.bias[i] = span.bias[work.bias_zero - i];
  std::fill_n(work.bias + n, kGroupRows, 0.0F);
}

void fill_group(const AttentionSpan& span, Group& group) {
  const F32x8 d;
  const Vec8 scale = hn::Set(d, span.scale);
  for (size_t c = 0; c < group.width; c += 8) {
    size_t k = 0;
    for (; k + 8 <= span.d_kv; k += 8) {
      Vec8 r[8];
      for (size_t i = 0; i < 8; ++i) {
        const bool there = c + i < group.rows;
        r[i] = there ? hn::LoadU(d, span.q.row(group.begin + c + i) + k) : hn::Zero(d);
        if (span.scale != 1.0F) r[i] = hn::Mul(r[i], scale);
      }
      transpose_eight(r);
      for (size_t i = 0; i < 8; ++i) hn::Store(r[i], d, group.q + (k + i) * group.width + c);
    }
    for (; k < span.d_kv; ++k) {
      for (size_t i = 0; i < 8; ++i) {
        const bool there = c + i < group.rows;
        const float value = there ? span.q.row(group.begin + c + i)[k] : 0.0F;
        group.q[k * group.width + c + i] = value * span.scale;
      }
    }
  }
  for (size_t i = 0; i < group.width; ++i) {
    const size_t row = group.begin + std::min(i, group.rows - 1);
    const size_t past = i < group.rows ? 0 : i - group.rows + 1;
    group.positions[i] = span.query_positions[row] + static_cast<int32_t>(past);
    if (group.positions[i] != group.positions[0] + static_cast<int32_t>(i))
      group.contiguous = false;
    group.max[i] = -std::numeric_limits<float>::infinity();
    group.sum[i] = 0.0F;
  }
}

template <int kVecs>
HWY_INLINE void add_bias(const Work& work, const Group& group, int32_t key_position,
                         float* scores) {
  const F32 d;
  const float* bias = work.bias + work.bias_zero - key_position;
  if (group.contiguous) {
    bias += group.positions[0];
    for (int v = 0; v < kVecs; ++v) {
      const size_t at = v * kLanes;
      hn::Store(hn::Add(hn::Load(d, scores + at), hn::LoadU(d, bias + at)), d, scores + at);
    }
    return;
  }
  for (size_t i = 0; i < group.rows; ++i) scores[i] += bias[group.positions[i]];
}

template <int kVecs>
HWY_INLINE void mask_later_keys(const Group& group, int32_t key_position, float* scores) {
  const F32 d;
  const hn::RebindToSigned<F32> di;
  for (int v = 0; v < kVecs; ++v) {
    const size_t at = v * kLanes;
    const auto later = hn::Gt(hn::Set(di, key_position), hn::Load(di, group.positions + at));
    const Vec score = hn::Load(d, scores + at);
    hn::Store(hn::IfThenElse(hn::RebindMask(d, later), hn::Neg(hn::Inf(d)), score), d, scores + at);
  }
}

// scores -> exp(scores - max), with max, sum and the factor for what was summed before brought up
// to date.
template <int kVecs>
HWY_INLINE void soften(const Work& work, const Group& group, size_t n_keys) {
  const F32 d;
  constexpr size_t kWidth = kVecs * kLanes;
  Vec max[kVecs];
  Vec sum[kVecs];
  for (int v = 0; v < kVecs; ++v) max[v] = hn::Load(d, group.max + v * kLanes);
  for (size_t j = 0; j < n_keys; ++j) {
    for (int v = 0; v < kVecs; ++v) {
      max[v] = hn::Max(max[v], hn::Load(d, work.scores + j * kWidth + v * kLanes));
    }
  }
  for (int v = 0; v < kVecs; ++v) {
    const size_t at = v * kLanes;
    const Vec factor = exp_below_limit(d, hn::Sub(hn::Load(d, group.max + at), max[v]));
    hn::Store(factor, d, work.rescale + at);
    hn::Store(max[v], d, group.max + at);
    sum[v] = hn::Mul(hn::Load(d, group.sum + at), factor);
  }
  for (size_t j = 0; j < n_keys; ++j) {
    for (int v = 0; v < kVecs; ++v) {
      float* score = work.scores + j * kWidth + v * kLanes;
      const Vec p = exp_below_limit(d, hn::Sub(hn::Load(d, score), max[v]));
      hn::Store(p, d, score);
      sum[v] = hn::Add(sum[v], p);
    }
  }
  for (int v = 0; v < kVecs; ++v) hn::Store(sum[v], d, group.sum + v * kLanes);
}

template <Order kOrder, int kVecs>
HWY_INLINE void multiply(const MicroCall& whole, size_t rows) {
  const size_t n_tiles = (rows + kMaxRows - 1) / kMaxRows;
  const MicroKernel* kernels = micro_kernels(
      kVecs == 2 ? PanelKind::kF32 : PanelKind::kF32OneVector, kOrder, 1, kMostSharers);
  for (size_t t = 0; t < n_tiles; ++t) {
    const size_t begin = rows * t / n_tiles;
    const size_t count = rows * (t + 1) / n_tiles - begin;
    MicroCall call = whole;
    call.a += kOrder == Order::kRows ? static_cast<ptrdiff_t>(begin) * call.a_stride
                                     : static_cast<ptrdiff_t>(begin);
    call.acc += begin * kVecs * kLanes;
    kernels[count - 1](call);
  }
}

// Fetches a key's rows of k and v into the second-level cache.
HWY_INLINE void prefetch_key(const AttentionSpan& span, size_t key) {
  for (size_t d = 0; d < span.d_kv; d += 16) {
    __builtin_prefetch(span.k.row(key) + d, 0, 2);
    __builtin_prefetch(span.v.row(key) + d, 0, 2);
  }
}

template <int kVecs>
void attend_block(const AttentionSpan& span, const Work& work, const Group& group, size_t key,
                  size_t n_keys) {
  multiply<Order::kRows, kVecs>({.a = span.k.row(key),
                                 .a_stride = span.k.stride,
                                 .b = reinterpret_cast<const std::byte*>(group.q),
                                 .b_stride = 0,
                                 .k = span.d_kv,
                                 .acc = work.scores,
                                 .acc_stride = 0,
                                 .start = MicroCall::Start::kZero,
                                 .scale = nullptr,
                                 .prefetch = reinterpret_cast<const char*>(group.q)},
                                n_keys);
  // Meanwhile each group fetches its share of the next block.
  const size_t next_keys = std::min(kBlockKeys, span.n_keys - key - n_keys);
  const size_t share = (next_keys + work.n_groups - 1) / work.n_groups;
  size_t fetch = key + n_keys + std::min(next_keys, group.begin / kGroupRows * share);
  const size_t fetch_end = std::min(fetch + share, key + n_keys + next_keys);
  const bool mask = span.causal && span.key_positions[key + n_keys - 1] > group.positions[0];
  for (size_t j = 0; j < n_keys; ++j) {
    if (j % kFetchEvery == 0 && fetch < fetch_end) prefetch_key(span, fetch++);
    float* scores = work.scores + j * kVecs * kLanes;
    const int32_t position = span.key_positions[key + j];
    if (span.bias != nullptr) add_bias<kVecs>(work, group, position, scores);
    if (mask) mask_later_keys<kVecs>(group, position, scores);
  }
  soften<kVecs>(work, group, n_keys);
  multiply<Order::kColumns, kVecs>(
      {.a = span.v.row(key),
       .a_stride = span.v.stride,
       .b = reinterpret_cast<const std::byte*>(work.scores),
       .b_stride = 0,
       .k = n_keys,
       .acc = group.context,
       .acc_stride = 0,
       .start = key == 0 ? MicroCall::Start::kZero : MicroCall::Start::kScale,
       .scale = work.rescale,
       .prefetch = reinterpret_cast<const char*>(work.scores)},
      span.d_kv);
}

// y = context / sum, turned back to rows. Adding 0 makes a negative zero positive: a key that is
// masked adds +0 or, where its block is passed over, nothing.
void store_group(const AttentionSpan& span, const Group& group) {
  const F32x8 d;
  for (size_t c = 0; c < group.rows; c += 8) {
    const Vec8 factor = hn::Div(hn::Set(d, 1.0F), hn::Load(d, group.sum + c));
    const size_t n_rows = std::min<size_t>(8, group.rows - c);
    for (size_t k = 0; k < span.d_kv; k += 8) {
      const size_t n_cols = std::min<size_t>(8, span.d_kv - k);
      Vec8 r[8];
      for (size_t i = 0; i < 8; ++i) {
        r[i] = i < n_cols ? hn::Load(d, group.context + (k + i) * group.width + c) : hn::Zero(d);
        r[i] = hn::MulAdd(r[i], factor, hn::Zero(d));
      }
      transpose_eight(r);
      for (size_t i = 0; i < n_rows; ++i) {
        float* to = span.y.row(group.begin + c + i) + k;
        if (n_cols == 8) {
          hn::StoreU(r[i], d, to);
        } else {
          HWY_ALIGN float row[8];
          hn::Store(r[i], d, row);
          std::copy_n(row, n_cols, to);
        }
      }
    }
  }
}

void attention_span(const AttentionSpan& span) {
  Work work;
  Arena count{nullptr};
  lay_out(span, count, work);
  Arena arena{thread_scratch(count.used)};
  lay_out(span, arena, work);
  fill_bias(span, work);
  for (size_t g = 0; g < work.n_groups; ++g) fill_group(span, work.groups[g]);
  for (size_t key = 0; key < span.n_keys; key += kBlockKeys) {
    const size_t n_keys = std::min(kBlockKeys, span.n_keys - key);
    for (size_t g = 0; g < work.n_groups; ++g) {
      const Group& group = work.groups[g];
      const int32_t last = span.query_positions[group.begin + group.rows - 1];
      if (span.causal && span.key_positions[key] > last) continue;
      if (group.width == kLanes) {
        attend_block<1>(span, work, group, key, n_keys);
      } else {
        attend_block<2>(span, work, group, key, n_keys);
      }
    }
  }
  for (size_t g = 0; g < work.n_groups; ++g) store_group(span, work.groups[g]);
}

}  // namespace

const AttentionKernels& attention_kernel_table() {
  static constexpr AttentionKernels kTable{.span_rows = kSpanRows, .span = &attention_span};
  return kTable;
}

}  // namespace HWY_NAMESPACE
}  // namespace quintet
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quintet {

const AttentionKernels& attention_kernels(Isa isa) {
  return isa == Isa::kAvx512 ? N_AVX3::attention_kernel_table() : N_AVX2::attention_kernel_table();
}

}  // namespace quintet
#endif  // HWY_ONCE
