// What is done to single rows, compiled per instruction set. Sums run over 16 fixed lanes, added up
// by a fixed tree, whatever the width of a vector.
#include "backends/cpu/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/row_kernels.cpp"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends/cpu/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace quintet {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using F32 = hn::ScalableTag<float>;
using Vec = hn::Vec<F32>;
constexpr size_t kLanes = HWY_MAX_BYTES / sizeof(float);
constexpr size_t kFixedLanes = 16;
constexpr size_t kParts = kFixedLanes / kLanes;

// The sum over x of what `add(sum, vector of x)` makes of a sum; x counts as longer by copies of
// `past`.
template <typename Add>
HWY_INLINE float fold(const float* x, size_t n, float past, const Add& add) {
  const F32 d;
  Vec sums[kParts];
  for (size_t p = 0; p < kParts; ++p) sums[p] = hn::Zero(d);
  const auto add_lanes = [&](const float* from) HWY_ATTR {
    for (size_t p = 0; p < kParts; ++p) sums[p] = add(sums[p], hn::LoadU(d, from + p * kLanes));
  };
  size_t i = 0;
  for (; i + kFixedLanes <= n; i += kFixedLanes) add_lanes(x + i);
  if (i < n) {
    float rest[kFixedLanes];
    std::fill(std::copy(x + i, x + n, rest), rest + kFixedLanes, past);
    add_lanes(rest);
  }
  HWY_ALIGN float lanes[kFixedLanes];
  for (size_t p = 0; p < kParts; ++p) hn::Store(sums[p], d, lanes + p * kLanes);
  for (size_t half = kFixedLanes / 2; half > 0; half /= 2) {
    for (size_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

float sum_of_squares(const float* x, size_t n) {
  return fold(x, n, 0.0F, [](Vec sum, Vec v) HWY_ATTR { return hn::MulAdd(v, v, sum); });
}

// y[i] = f(vector of x at i), f working on any number of lanes; x and y may be the same row.
template <typename F>
HWY_INLINE void map_row(size_t n, F&& f) {
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) f(F32(), i);
  for (; i < n; ++i) f(hn::CappedTag<float, 1>(), i);
}

void rms_norm(const float* x, const float* weight, float eps, size_t n, float* y) {
  const float mean = sum_of_squares(x, n) / static_cast<float>(n);
  const float factor = 1.0F / std::sqrt(mean + eps);
  map_row(n, [&](auto d, size_t i) HWY_ATTR {
    const auto scaled = hn::Mul(hn::LoadU(d, x + i), hn::Set(d, factor));
    hn::StoreU(hn::Mul(scaled, hn::LoadU(d, weight + i)), d, y + i);
  });
}

void layer_norm(const float* x, const float* weight, const float* bias, float eps, size_t n,
                float* y) {
  const auto count = static_cast<float>(n);
  const float mean =
      fold(x, n, 0.0F, [](Vec sum, Vec v) HWY_ATTR { return hn::Add(sum, v); }) / count;
  const Vec mean_lanes = hn::Set(F32(), mean);
  const float variance = fold(x, n, mean,
                              [&](Vec sum, Vec v) HWY_ATTR {
                                const Vec distance = hn::Sub(v, mean_lanes);
                                return hn::MulAdd(distance, distance, sum);
                              }) /
                         count;
  const float factor = 1.0F / std::sqrt(variance + eps);
  map_row(n, [&](auto d, size_t i) HWY_ATTR {
    const auto centred = hn::Sub(hn::LoadU(d, x + i), hn::Set(d, mean));
    const auto normal = hn::Mul(centred, hn::Set(d, factor));
    hn::StoreU(hn::MulAdd(normal, hn::LoadU(d, weight + i), hn::LoadU(d, bias + i)), d, y + i);
  });
}

void add(const float* x, size_t n, float* y) {
  map_row(n, [&](auto d, size_t i) HWY_ATTR {
    hn::StoreU(hn::Add(hn::LoadU(d, y + i), hn::LoadU(d, x + i)), d, y + i);
  });
}

void widen_row(const std::byte* x, DType dtype, size_t n, float* y) {
  const F32 d;
  const hn::Rebind<uint16_t, F32> du16;
  const hn::Rebind<uint32_t, F32> du32;
  const hn::Rebind<hwy::float16_t, F32> dh;
  size_t i = 0;
  if (dtype == DType::kBFloat16) {
    for (; i + kLanes <= n; i += kLanes) {
      const auto bits = hn::LoadU(du16, reinterpret_cast<const uint16_t*>(x) + i);
      hn::StoreU(hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du32, bits))), d, y + i);
    }
  } else if (dtype == DType::kFloat16) {
    for (; i + kLanes <= n; i += kLanes) {
      const auto half = hn::LoadU(dh, reinterpret_cast<const hwy::float16_t*>(x) + i);
      hn::StoreU(hn::PromoteTo(d, half), d, y + i);
    }
  }
  widen(x + i * size_of(dtype), dtype, n - i, y + i);
}

}  // namespace

const RowKernels& row_kernel_table() {
  static constexpr RowKernels kTable{.rms_norm = &rms_norm,
                                     .layer_norm = &layer_norm,
                                     .widen = &widen_row,
                                     .add = &add,
                                     .sum_of_squares = &sum_of_squares};
  return kTable;
}

}  // namespace HWY_NAMESPACE
}  // namespace quintet
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quintet {

const RowKernels& row_kernels(Isa isa) {
  return isa == Isa::kAvx512 ? N_AVX3::row_kernel_table() : N_AVX2::row_kernel_table();
}

}  // namespace quintet
#endif  // HWY_ONCE
