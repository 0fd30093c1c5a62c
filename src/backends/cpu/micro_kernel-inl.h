// What the kernels share: vectors, panels, and the call of the one inner loop of matrix products
// and attention: a few rows of A, broadcast, times a panel of one or two vectors of columns. Every
// element of the result is one chain of fused multiply-adds over k in rising order, whatever the
// number of rows and the vector width: no bit of it depends on how a product is cut. Included once
// per instruction set.
#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#if defined(QUINTET_BACKENDS_CPU_MICRO_KERNEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUINTET_BACKENDS_CPU_MICRO_KERNEL_INL_H_
#undef QUINTET_BACKENDS_CPU_MICRO_KERNEL_INL_H_
#else
#define QUINTET_BACKENDS_CPU_MICRO_KERNEL_INL_H_
#endif

#define QUINTET_LAMBDA HWY_ATTR __attribute__((always_inline))

HWY_BEFORE_NAMESPACE();
namespace quintet {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using U32 = hn::ScalableTag<uint32_t>;
using Vec = hn::Vec<F32>;
inline constexpr size_t kLanes = HWY_MAX_BYTES / sizeof(float);

// Rows of a full tile: with two vectors of columns the accumulators fill the register file but for
// what a row of B and a broadcast need.
inline constexpr int kMaxRows = HWY_TARGET <= HWY_AVX3 ? 12 : 6;

// f(0), f(1), ..., f(n - 1), each with its number as a type: nothing is left to unrolling passes.
template <int... kI, typename F>
HWY_INLINE void for_each_index(std::integer_sequence<int, kI...>, F&& f) {
  (f(std::integral_constant<int, kI>{}), ...);
}
template <int kN, typename F>
HWY_INLINE void repeat(F&& f) {
  for_each_index(std::make_integer_sequence<int, kN>{}, f);
}

// How the rows of a panel are stored; load() widens row k exactly to kVecs vectors.
template <int kV>
struct PanelF32 {  // [K][kV * lanes]
  static constexpr int kVecs = kV;
  static constexpr size_t kRowBytes = kV * kLanes * sizeof(float);
  static HWY_INLINE void load(const std::byte* row, Vec* b) {
    const auto* p = reinterpret_cast<const float*>(row);
    for (int i = 0; i < kV; ++i) b[i] = hn::Load(F32(), p + i * kLanes);
  }
};
struct PanelBF16 {  // [K][lanes] pairs: the low half is of the first vector, the high of the second
  static constexpr int kVecs = 2;
  static constexpr size_t kRowBytes = kLanes * sizeof(uint32_t);
  static HWY_INLINE void load(const std::byte* row, Vec* b) {
    const U32 du;
    const auto pair = hn::Load(du, reinterpret_cast<const uint32_t*>(row));
    b[0] = hn::BitCast(F32(), hn::ShiftLeft<16>(pair));
    b[1] = hn::BitCast(F32(), hn::And(pair, hn::Set(du, 0xFFFF0000U)));
  }
};
struct PanelF16 {  // [K][2 * lanes]
  static constexpr int kVecs = 2;
  static constexpr size_t kRowBytes = 2 * kLanes * sizeof(uint16_t);
  static HWY_INLINE void load(const std::byte* row, Vec* b) {
    const hn::Rebind<hwy::float16_t, F32> dh;
    const auto* p = reinterpret_cast<const hwy::float16_t*>(row);
    b[0] = hn::PromoteTo(F32(), hn::Load(dh, p));
    b[1] = hn::PromoteTo(F32(), hn::Load(dh, p + kLanes));
  }
};

// acc[rows][kVecs * lanes] = start + A[rows][k] * panel[k][kVecs * lanes]
struct MicroCall {
  const float* a;  // element (row, k) at a[row * a_stride + k], or, where the loop runs down the
  ptrdiff_t a_stride;  // columns of a row-major matrix, at a[row + k * a_stride]
  const std::byte* b;
  ptrdiff_t b_stride;  // bytes between panels that are worked on at once
  size_t k;
  float* acc;            // 64-byte aligned
  ptrdiff_t acc_stride;  // floats between the accumulators of panels worked on at once
  enum class Start { kZero, kAccumulate, kScale } start;
  const float* scale;    // [kVecs * lanes], with kScale: acc * scale is where the sum starts
  const char* prefetch;  // where to prefetch from, for panels worked on at once b_stride apart
};

enum class Order { kRows, kColumns };  // of A, see MicroCall::a

// The inner loop for 1, 2, ... rows, compiled in micro_kernels.cpp; `panels` of them at once. With
// more than one panel there are fewer rows, as far as the registers go: see most_rows().
enum class PanelKind { kF32, kF32OneVector, kBF16, kF16 };
using MicroKernel = void (*)(const MicroCall&);

// Meanwhile a kernel prefetches its share where `sharers` calls fetch together as many bytes as
// each reads: 1 or kMostSharers; with one panel of float32, 2 or 3, too. Of more panels at once: 1.
constexpr int kMostSharers = 4;
const MicroKernel* micro_kernels(PanelKind kind, Order order, int panels, int sharers);

// Cache lines prefetched per four steps of k of a panel whose rows have `row_bytes`.
constexpr int prefetch_lines(int row_bytes, int sharers) {
  const int lines = 4 * row_bytes / 64;
  const int share = (lines + sharers - 1) / sharers;
  return share < 2 ? 2 : share;
}

// The most rows whose accumulators fit into the registers with `panels` in flight.
constexpr int most_rows(int panels) {
  constexpr bool kManyRegisters = kMaxRows >= 12;
  if (panels == 4) return kManyRegisters ? 2 : 1;
  if (panels == 2) return kManyRegisters ? 5 : 3;
  return kMaxRows;
}

}  // namespace HWY_NAMESPACE
}  // namespace quintet
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
