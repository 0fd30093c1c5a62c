// Columns of a weight matrix to one panel: transposed where need be, widened or rounded to the
// panel's dtype. Included once per instruction set.
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

#include "backends/cpu/kernels.h"
#include "backends/cpu/micro_kernel-inl.h"

#if defined(QUINTET_BACKENDS_CPU_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUINTET_BACKENDS_CPU_PACK_INL_H_
#undef QUINTET_BACKENDS_CPU_PACK_INL_H_
#else
#define QUINTET_BACKENDS_CPU_PACK_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace quintet {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using F32x8 = hn::CappedTag<float, 8>;
using Vec8 = hn::Vec<F32x8>;

// Eight floats of a row that may lie at any address.
HWY_INLINE Vec8 load_eight(const std::byte* from, DType dtype) {
  const F32x8 d;
  const hn::Rebind<uint32_t, F32x8> du;
  if (dtype == DType::kFloat32) return hn::LoadU(d, reinterpret_cast<const float*>(from));
  HWY_ALIGN uint16_t half[8];
  std::memcpy(half, from, sizeof half);
  if (dtype == DType::kBFloat16) {
    const hn::Rebind<uint16_t, F32x8> du16;
    return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, hn::Load(du16, half))));
  }
  const hn::Rebind<hwy::float16_t, F32x8> dh;
  return hn::PromoteTo(d, hn::Load(dh, reinterpret_cast<const hwy::float16_t*>(half)));
}

HWY_INLINE void transpose_eight(Vec8* r) {
  const F32x8 d;
  const hn::RepartitionToWide<F32x8> dw;
  Vec8 t[8];
  for (int i = 0; i < 4; ++i) {
    t[2 * i] = hn::InterleaveLower(d, r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = hn::InterleaveUpper(d, r[2 * i], r[2 * i + 1]);
  }
  const auto low = [&](Vec8 a, Vec8 b) QUINTET_LAMBDA {
    return hn::BitCast(d, hn::InterleaveLower(dw, hn::BitCast(dw, a), hn::BitCast(dw, b)));
  };
  const auto high = [&](Vec8 a, Vec8 b) QUINTET_LAMBDA {
    return hn::BitCast(d, hn::InterleaveUpper(dw, hn::BitCast(dw, a), hn::BitCast(dw, b)));
  };
  const Vec8 u[8] = {low(t[0], t[2]), high(t[0], t[2]), low(t[1], t[3]), high(t[1], t[3]),
                     low(t[4], t[6]), high(t[4], t[6]), low(t[5], t[7]), high(t[5], t[7])};
  for (int i = 0; i < 4; ++i) {
    r[i] = hn::ConcatLowerLower(d, u[i + 4], u[i]);
    r[i + 4] = hn::ConcatUpperUpper(d, u[i + 4], u[i]);
  }
}

// One step of k of eight columns, whose elements lie side by side or anywhere.
HWY_INLINE void copy_eight(const std::byte* const* columns, size_t offset, DType source,
                           float* out) {
  const auto size = static_cast<ptrdiff_t>(size_of(source));
  bool adjacent = columns[0] != nullptr;
  for (ptrdiff_t i = 1; i < 8; ++i) {
    adjacent = adjacent && columns[i] != nullptr && columns[i] - columns[0] == i * size;
  }
  if (adjacent) {
    hn::Store(load_eight(columns[0] + offset, source), F32x8(), out);
    return;
  }
  for (size_t i = 0; i < 8; ++i) {
    out[i] = 0.0F;
    if (columns[i] != nullptr) widen(columns[i] + offset, source, 1, out + i);
  }
}

// out[k][2 * lanes] for k in [0, n): the elements [k_begin, k_begin + n) of the task's columns.
inline void copy_columns(const PackTask& task, size_t k_begin, size_t n, float* out) {
  for (size_t k = 0; k < n; ++k) {
    for (size_t c = 0; c < 2 * kLanes; c += 8) {
      copy_eight(task.columns + c, (k_begin + k) * task.step, task.source,
                 out + k * 2 * kLanes + c);
    }
  }
}

// The same where the elements of a column lie side by side.
inline void transpose_columns(const PackTask& task, size_t k_begin, size_t n, float* out) {
  const F32x8 d;
  const size_t size = size_of(task.source);
  for (size_t c = 0; c < 2 * kLanes; c += 8) {
    size_t k = 0;
    for (; k + 8 <= n; k += 8) {
      Vec8 r[8];
      for (size_t i = 0; i < 8; ++i) {
        const std::byte* column = task.columns[c + i];
        r[i] = column == nullptr ? hn::Zero(d)
                                 : load_eight(column + (k_begin + k) * size, task.source);
      }
      transpose_eight(r);
      for (size_t i = 0; i < 8; ++i) hn::Store(r[i], d, out + (k + i) * 2 * kLanes + c);
    }
    for (; k < n; ++k) {
      for (size_t i = 0; i < 8; ++i) {
        float value = 0.0F;
        const std::byte* column = task.columns[c + i];
        if (column != nullptr) widen(column + (k_begin + k) * size, task.source, 1, &value);
        out[k * 2 * kLanes + c + i] = value;
      }
    }
  }
}

// The upper half of each float rounded to nearest even, where it stands; NaN stays NaN.
HWY_INLINE hn::Vec<U32> round_to_bfloat16(Vec v) {
  const U32 du;
  const auto bits = hn::BitCast(du, v);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7FFF)));
  const auto quiet = hn::Or(bits, hn::Set(du, 0x400000));
  const auto is_nan = hn::RebindMask(du, hn::IsNaN(v));
  return hn::And(hn::IfThenElse(is_nan, quiet, rounded), hn::Set(du, 0xFFFF0000U));
}

// Stores n rows of a panel in its dtype; false where a finite value became infinite.
inline bool store_rows(const float* rows, size_t n, DType target, std::byte* out) {
  const F32 d;
  if (target == DType::kBFloat16) {
    const U32 du;
    auto* to = reinterpret_cast<uint32_t*>(out);
    for (size_t k = 0; k < n; ++k) {
      const auto first = round_to_bfloat16(hn::Load(d, rows + k * 2 * kLanes));
      const auto second = round_to_bfloat16(hn::Load(d, rows + k * 2 * kLanes + kLanes));
      hn::Store(hn::Or(hn::ShiftRight<16>(first), second), du, to + k * kLanes);
    }
    return true;
  }
  const hn::Rebind<hwy::float16_t, F32> dh;
  auto* to = reinterpret_cast<hwy::float16_t*>(out);
  Vec largest = hn::Zero(d);  // of the finite values
  for (size_t i = 0; i < n * 2 * kLanes; i += kLanes) {
    const Vec v = hn::Load(d, rows + i);
    const Vec a = hn::Abs(v);
    largest = hn::Max(largest, hn::IfThenElseZero(hn::Lt(a, hn::Inf(d)), a));
    hn::Store(hn::DemoteTo(dh, v), dh, to + i);
  }
  return hn::AllTrue(d, hn::Lt(largest, hn::Set(d, 65520.0F)));
}

inline bool pack_panel(const PackTask& task) {
  constexpr size_t kChunk = 128;  // steps of k that stay in the first-level cache
  HWY_ALIGN float buffer[kChunk * 2 * kLanes];
  const size_t row_bytes = 2 * kLanes * size_of(task.target);
  const auto read = task.step == size_of(task.source) ? &transpose_columns : &copy_columns;
  bool fits = true;
  for (size_t k = 0; k < task.n; k += kChunk) {
    const size_t n = std::min(kChunk, task.n - k);
    std::byte* out = task.panel + k * row_bytes;
    if (task.target == DType::kFloat32) {
      read(task, k, n, reinterpret_cast<float*>(out));
    } else {
      read(task, k, n, buffer);
      fits = store_rows(buffer, n, task.target, out) && fits;
    }
  }
  return fits;
}

}  // namespace HWY_NAMESPACE
}  // namespace quintet
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
