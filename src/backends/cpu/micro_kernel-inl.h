// The one inner loop of matrix products and attention: a few rows of A, broadcast, times a panel of
// one or two vectors of columns. Every element of the result is one chain of fused multiply-adds
// over k in rising order, whatever the number of rows and the vector width: no bit of it depends on
// how a product is cut. Included once per instruction set.
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
  const char* prefetch;  // where to prefetch from, 128 bytes per four steps of k
};

enum class Order { kRows, kColumns };  // of A, see MicroCall::a

template <Order kOrder, int kRows>
struct Rows {
  // Addresses of the rows: every third is kept, the others lie one and two strides behind.
  static constexpr int kBases = kOrder == Order::kRows ? (kRows + 2) / 3 : 1;
  const char* base[kBases];
  ptrdiff_t stride;  // bytes

  HWY_INLINE Rows(const float* a, ptrdiff_t a_stride)
      : stride(a_stride * static_cast<ptrdiff_t>(sizeof(float))) {
    repeat<kBases>([&](auto i) QUINTET_LAMBDA {
      base[i] = reinterpret_cast<const char*>(a) + 3 * i * stride;
    });
  }
  template <int kRow, int kStep>
  HWY_INLINE Vec get() const {
    const char* p = nullptr;
    if constexpr (kOrder == Order::kColumns) {
      p = base[0] + kRow * sizeof(float);  // advanced at each step
    } else {
      p = base[kRow / 3] + (kRow % 3) * stride + kStep * sizeof(float);
    }
    return hn::Set(F32(), *reinterpret_cast<const float*>(p));
  }
  template <int kSteps>
  HWY_INLINE void advance() {
    if constexpr (kOrder == Order::kColumns) {
      base[0] += stride;
    } else {
      repeat<kBases>([&](auto i) QUINTET_LAMBDA { base[i] += kSteps * sizeof(float); });
    }
  }
};

template <int kRows, int kPanels, Order kOrder, typename Panel>
HWY_NOINLINE void micro_kernel(const MicroCall& call) {
  constexpr int kVecs = Panel::kVecs;
  constexpr int kUnroll = 4;
  const F32 d;
  Vec acc[kRows * kPanels * kVecs];
  const auto address = [&](auto i) QUINTET_LAMBDA {
    constexpr int kRow = i / (kPanels * kVecs);
    constexpr int kPanel = i / kVecs % kPanels;
    return call.acc + kPanel * call.acc_stride +
           (kRow * kVecs + i % kVecs) * static_cast<ptrdiff_t>(kLanes);
  };
  constexpr int kAccumulators = kRows * kPanels * kVecs;
  if (call.start == MicroCall::Start::kZero) {
    repeat<kAccumulators>([&](auto i) QUINTET_LAMBDA { acc[i] = hn::Zero(d); });
  } else {
    repeat<kAccumulators>([&](auto i) QUINTET_LAMBDA { acc[i] = hn::Load(d, address(i)); });
    if (call.start == MicroCall::Start::kScale) {
      repeat<kAccumulators>([&](auto i) QUINTET_LAMBDA {
        acc[i] = hn::Mul(acc[i], hn::Load(d, call.scale + i % kVecs * kLanes));
      });
    }
  }
  Rows<kOrder, kRows> rows(call.a, call.a_stride);
  const std::byte* b = call.b;
  const auto step = [&](auto k) QUINTET_LAMBDA {
    Vec bk[kPanels * kVecs];
    repeat<kPanels>([&](auto p) QUINTET_LAMBDA {
      Panel::load(b + p * call.b_stride + k * Panel::kRowBytes, bk + p * kVecs);
    });
    repeat<kRows>([&](auto r) QUINTET_LAMBDA {
      const Vec a = rows.template get<r, k>();
      repeat<kPanels * kVecs>([&](auto j) QUINTET_LAMBDA {
        acc[r * kPanels * kVecs + j] = hn::MulAdd(a, bk[j], acc[r * kPanels * kVecs + j]);
      });
    });
    if constexpr (kOrder == Order::kColumns) rows.template advance<1>();
  };
  const char* prefetch = call.prefetch;
  size_t n = call.k;
  for (; n >= kUnroll; n -= kUnroll) {
    __builtin_prefetch(prefetch, 0, 2);
    __builtin_prefetch(prefetch + 64, 0, 2);
    repeat<kUnroll>(step);
    if constexpr (kOrder == Order::kRows) rows.template advance<kUnroll>();
    b += kUnroll * Panel::kRowBytes;
    prefetch += 128;
  }
  for (; n > 0; --n) {
    step(std::integral_constant<int, 0>{});
    if constexpr (kOrder == Order::kRows) rows.template advance<1>();
    b += Panel::kRowBytes;
  }
  repeat<kAccumulators>([&](auto i) QUINTET_LAMBDA { hn::Store(acc[i], d, address(i)); });
}

// micro_kernel for 1 ... kMaxRows rows.
using MicroKernel = void (*)(const MicroCall&);
template <Order kOrder, typename Panel, int kPanels = 1, int kMost = kMaxRows>
struct MicroKernels {
  template <int... kI>
  static MicroKernel get(int rows, std::integer_sequence<int, kI...>) {
    static constexpr MicroKernel kTable[] = {&micro_kernel<kI + 1, kPanels, kOrder, Panel>...};
    return kTable[rows - 1];
  }
  static MicroKernel get(int rows) { return get(rows, std::make_integer_sequence<int, kMost>{}); }
};

}  // namespace HWY_NAMESPACE
}  // namespace quintet
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
