// What is done to rows of logits, compiled per instruction set. Sums run over 16 fixed lanes.
#include "backends/cpu/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/logit_kernels.cpp"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <hwy/highway.h>

#include <algorithm>
#include <limits>

#include "backends/cpu/decoding_kernels.h"
#include "backends/cpu/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quintet {
namespace HWY_NAMESPACE {
namespace {

using F32 = hn::ScalableTag<float>;
using Vec = hn::Vec<F32>;
constexpr size_t kLanes = HWY_MAX_BYTES / sizeof(float);
constexpr size_t kFixedLanes = 16;
constexpr size_t kParts = kFixedLanes / kLanes;
constexpr float kNothing = -std::numeric_limits<float>::infinity();

// f(part, 16 numbers of x's part), the last ones followed by -infinity.
template <typename F>
HWY_INLINE void for_fixed_lanes(const float* x, size_t n, const F& f) {
  const F32 d;
  size_t i = 0;
  for (; i + kFixedLanes <= n; i += kFixedLanes) {
    for (size_t p = 0; p < kParts; ++p) f(p, hn::LoadU(d, x + i + p * kLanes));
  }
  if (i < n) {
    float rest[kFixedLanes];
    std::fill(std::copy(x + i, x + n, rest), rest + kFixedLanes, kNothing);
    for (size_t p = 0; p < kParts; ++p) f(p, hn::LoadU(d, rest + p * kLanes));
  }
}

float max(const float* x, size_t n) {
  const F32 d;
  Vec most[kParts];
  for (size_t p = 0; p < kParts; ++p) most[p] = hn::Set(d, kNothing);
  for_fixed_lanes(x, n, [&](size_t p, Vec v) HWY_ATTR { most[p] = hn::Max(most[p], v); });
  for (size_t p = 1; p < kParts; ++p) most[0] = hn::Max(most[0], most[p]);
  return hn::GetLane(hn::MaxOfLanes(d, most[0]));
}

float sum_of_exp(const float* x, size_t n, float max) {
  const F32 d;
  const Vec highest = hn::Set(d, max);
  Vec sums[kParts];
  for (size_t p = 0; p < kParts; ++p) sums[p] = hn::Zero(d);
  for_fixed_lanes(x, n, [&](size_t p, Vec v) HWY_ATTR {
    sums[p] = hn::Add(sums[p], exp_below_limit(d, hn::Sub(v, highest)));
  });
  HWY_ALIGN float lanes[kFixedLanes];
  for (size_t p = 0; p < kParts; ++p) hn::Store(sums[p], d, lanes + p * kLanes);
  for (size_t half = kFixedLanes / 2; half > 0; half /= 2) {
    for (size_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

void subtract(float max, float log_sum, size_t n, float* x) {
  const F32 d;
  const Vec highest = hn::Set(d, max);
  const Vec log = hn::Set(d, log_sum);
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    hn::StoreU(hn::Sub(hn::Sub(hn::LoadU(d, x + i), highest), log), d, x + i);
  }
  for (; i < n; ++i) x[i] = x[i] - max - log_sum;
}

size_t find_above(const float* x, size_t begin, size_t n, float threshold) {
  const F32 d;
  const Vec limit = hn::Set(d, threshold);
  const auto above = [&](size_t i) HWY_ATTR { return hn::Gt(hn::LoadU(d, x + i), limit); };
  size_t i = begin;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    const auto any = hn::Or(hn::Or(above(i), above(i + kLanes)),
                            hn::Or(above(i + 2 * kLanes), above(i + 3 * kLanes)));
    if (!hn::AllFalse(d, any)) break;
  }
  for (; i + kLanes <= n; i += kLanes) {
    const intptr_t first = hn::FindFirstTrue(d, above(i));
    if (first >= 0) return i + static_cast<size_t>(first);
  }
  while (i < n && !(x[i] > threshold)) ++i;
  return i;
}

}  // namespace

const LogitKernels& logit_kernel_table() {
  static constexpr LogitKernels kTable{
      .max = &max, .sum_of_exp = &sum_of_exp, .subtract = &subtract, .find_above = &find_above};
  return kTable;
}

}  // namespace HWY_NAMESPACE
}  // namespace quintet
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quintet {

const LogitKernels& logit_kernels(Isa isa) {
  return isa == Isa::kAvx512 ? N_AVX3::logit_kernel_table() : N_AVX2::logit_kernel_table();
}

}  // namespace quintet
#endif  // HWY_ONCE
