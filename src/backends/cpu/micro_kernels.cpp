// The inner loop of matrix products and attention, compiled per instruction set for every number of
// rows and every way in which a panel is stored.
#include "backends/cpu/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/micro_kernels.cpp"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include "backends/cpu/micro_kernel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quintet {
namespace HWY_NAMESPACE {
namespace {

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

constexpr int kUnroll = 4;
constexpr int kLine = 64;  // bytes of a cache line

// kLines: cache lines to prefetch of each panel while four steps are done.
template <int kRows, int kPanels, Order kOrder, typename Panel, int kLines>
HWY_NOINLINE void micro_kernel(const MicroCall& call) {
  constexpr int kVecs = Panel::kVecs;
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
    repeat<kPanels * kLines>([&](auto i) QUINTET_LAMBDA {
      __builtin_prefetch(prefetch + i / kLines * call.b_stride + i % kLines * kLine, 0, 2);
    });
    repeat<kUnroll>(step);
    if constexpr (kOrder == Order::kRows) rows.template advance<kUnroll>();
    b += kUnroll * Panel::kRowBytes;
    prefetch += kLines * kLine;
  }
  for (; n > 0; --n) {
    step(std::integral_constant<int, 0>{});
    if constexpr (kOrder == Order::kRows) rows.template advance<1>();
    b += Panel::kRowBytes;
  }
  repeat<kAccumulators>([&](auto i) QUINTET_LAMBDA { hn::Store(acc[i], d, address(i)); });
}

template <Order kOrder, typename Panel, int kPanels, int kLines, int... kI>
const MicroKernel* table(std::integer_sequence<int, kI...>) {
  static constexpr MicroKernel kTable[] = {
      &micro_kernel<kI + 1, kPanels, kOrder, Panel, kLines>...};
  return kTable;
}

template <typename Panel, Order kOrder = Order::kRows, int kPanels = 1, int kSharers = kMostSharers>
const MicroKernel* table() {
  constexpr int kLines = prefetch_lines(Panel::kRowBytes, kSharers);
  return table<kOrder, Panel, kPanels, kLines>(
      std::make_integer_sequence<int, most_rows(kPanels)>{});
}

template <typename Panel>
const MicroKernel* table_by_panels(int panels, int sharers) {
  if (panels == 4) return table<Panel, Order::kRows, 4, 1>();
  if (panels == 2) return table<Panel, Order::kRows, 2, 1>();
  return sharers == 1 ? table<Panel, Order::kRows, 1, 1>() : table<Panel>();
}

}  // namespace

const MicroKernel* micro_kernels(PanelKind kind, Order order, int panels, int sharers) {
  const bool columns = order == Order::kColumns;
  switch (kind) {
    case PanelKind::kBF16:
      return table_by_panels<PanelBF16>(panels, sharers);
    case PanelKind::kF16:
      return table_by_panels<PanelF16>(panels, sharers);
    case PanelKind::kF32OneVector:
      return columns ? table<PanelF32<1>, Order::kColumns>() : table<PanelF32<1>>();
    case PanelKind::kF32:
      break;
  }
  if (columns) return table<PanelF32<2>, Order::kColumns>();
  if (panels == 1 && sharers == 2) return table<PanelF32<2>, Order::kRows, 1, 2>();
  if (panels == 1 && sharers == 3) return table<PanelF32<2>, Order::kRows, 1, 3>();
  return table_by_panels<PanelF32<2>>(panels, sharers);
}

}  // namespace HWY_NAMESPACE
}  // namespace quintet
HWY_AFTER_NAMESPACE();
