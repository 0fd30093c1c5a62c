// Matrix products on packed panels, compiled per instruction set.
#include "backends/cpu/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/gemm_kernels.cpp"
#include <hwy/foreach_target.h>
// after foreach_target.h
#include <algorithm>
#include <cstring>

#include "backends/cpu/kernels.h"
#include "backends/cpu/math-inl.h"
#include "backends/cpu/micro_kernel-inl.h"
#include "backends/cpu/pack-inl.h"
#include "backends/cpu/thread_pool.h"

HWY_BEFORE_NAMESPACE();
namespace quintet {
namespace HWY_NAMESPACE {
namespace {

constexpr size_t kPanelCols = 2 * kLanes;
constexpr size_t kMaxDepth = 256;  // steps of k whose panel stays in the first-level cache
// While weights stream they are fetched so many bytes ahead of one tile of rows, or of up to
// kFewTiles tiles that take turns on kStreamDepth steps of k.
constexpr size_t kAhead = 4096;
constexpr size_t kTilesAhead = 16384;
constexpr size_t kFewTiles = 3;
constexpr size_t kStreamDepth = 128;
constexpr size_t kWidenTiles = 4;  // from here on a narrow panel is widened once for all its tiles

// ---- What is done to the sums of one tile [rows][2 * lanes] before they reach y.

template <Activation kActivation, bool kGated, bool kAccumulate>
HWY_INLINE void finish_row(const float* sums, size_t cols, float* y) {
  const F32 d;
  constexpr int kOut = kGated ? 1 : 2;
  Vec out[kOut];
  if constexpr (kGated) {
    out[0] = hn::Mul(activate<kActivation>(d, hn::Load(d, sums)), hn::Load(d, sums + kLanes));
  } else {
    out[0] = activate<kActivation>(d, hn::Load(d, sums));
    out[1] = activate<kActivation>(d, hn::Load(d, sums + kLanes));
  }
  if (cols == kOut * kLanes) {
    for (int i = 0; i < kOut; ++i) {
      float* to = y + i * kLanes;
      hn::StoreU(kAccumulate ? hn::Add(hn::LoadU(d, to), out[i]) : out[i], d, to);
    }
    return;
  }
  HWY_ALIGN float whole[kOut * kLanes];
  for (int i = 0; i < kOut; ++i) hn::Store(out[i], d, whole + i * kLanes);
  for (size_t j = 0; j < cols; ++j) y[j] = kAccumulate ? y[j] + whole[j] : whole[j];
}

struct FinishCall {
  float* sums;  // [rows][2 * lanes]
  size_t rows;
  size_t cols;  // of y that the panel covers
  float* y;
  ptrdiff_t y_stride;
};

template <Activation kActivation, bool kGated, bool kAccumulate>
void finish_tile(const FinishCall& call) {
  for (size_t i = 0; i < call.rows; ++i) {
    finish_row<kActivation, kGated, kAccumulate>(
        call.sums + i * kPanelCols, call.cols, call.y + static_cast<ptrdiff_t>(i) * call.y_stride);
  }
}

using Finish = void (*)(const FinishCall&);

template <Activation kActivation>
Finish finish_for(bool gated, bool accumulate) {
  if (gated) {
    return accumulate ? &finish_tile<kActivation, true, true>
                      : &finish_tile<kActivation, true, false>;
  }
  return accumulate ? &finish_tile<kActivation, false, true>
                    : &finish_tile<kActivation, false, false>;
}

Finish finish_for(const TileEpilogue& epilogue, bool gated) {
  switch (epilogue.activation) {
    case Activation::kRelu:
      return finish_for<Activation::kRelu>(gated, epilogue.accumulate);
    case Activation::kGeluTanh:
      return finish_for<Activation::kGeluTanh>(gated, epilogue.accumulate);
    case Activation::kGeluErf:
      return finish_for<Activation::kGeluErf>(gated, epilogue.accumulate);
    case Activation::kSilu:
      return finish_for<Activation::kSilu>(gated, epilogue.accumulate);
    case Activation::kTanh:
      return finish_for<Activation::kTanh>(gated, epilogue.accumulate);
    case Activation::kGeluQuick:
      return finish_for<Activation::kGeluQuick>(gated, epilogue.accumulate);
    case Activation::kNone:
      break;
  }
  return finish_for<Activation::kNone>(gated, epilogue.accumulate);
}

// sums = scale * sums + bias; with a gate the first vector alone, which has no bias.
void scale_and_shift(const TileEpilogue& epilogue, bool gated, size_t col, const FinishCall& call) {
  const F32 d;
  const Vec scale = hn::Set(d, epilogue.scale);
  HWY_ALIGN float whole[kPanelCols] = {};
  if (epilogue.bias != nullptr) std::copy_n(epilogue.bias + col, call.cols, whole);
  const Vec bias[2] = {hn::Load(d, whole), hn::Load(d, whole + kLanes)};
  for (size_t i = 0; i < call.rows; ++i) {
    for (size_t j = 0; j < (gated ? 1 : 2); ++j) {
      float* sums = call.sums + i * kPanelCols + j * kLanes;
      hn::Store(hn::MulAdd(hn::Load(d, sums), scale, bias[j]), d, sums);
    }
  }
}

// What is left to do once a tile's sums of one panel are whole.
class Finisher {
 public:
  explicit Finisher(const LinearTile& tile)
      : tile_(tile),
        finish_(finish_for(tile.epilogue, tile.w.gated)),
        affine_(tile.epilogue.bias != nullptr || tile.epilogue.scale != 1.0F) {}

  void operator()(float* sums, size_t row, size_t rows, size_t panel) const {
    const size_t width = tile_.w.gated ? kLanes : kPanelCols;
    const size_t col = panel * width;
    const FinishCall call{.sums = sums,
                          .rows = rows,
                          .cols = std::min(width, tile_.w.d_out - col),
                          .y = tile_.y.row(row) + col,
                          .y_stride = tile_.y.stride};
    if (affine_) scale_and_shift(tile_.epilogue, tile_.w.gated, col, call);
    finish_(call);
  }

 private:
  const LinearTile& tile_;
  const Finish finish_;
  const bool affine_;
};

// ---- Panels by dtype.

size_t row_bytes_of(DType dtype) {
  return kPanelCols * (dtype == DType::kFloat32 ? sizeof(float) : sizeof(uint16_t));
}

PanelKind kind_of(DType dtype) {
  if (dtype == DType::kBFloat16) return PanelKind::kBF16;
  return dtype == DType::kFloat16 ? PanelKind::kF16 : PanelKind::kF32;
}

template <typename Panel>
void widen_panel(const std::byte* from, size_t n, float* to) {
  const F32 d;
  for (size_t k = 0; k < n; ++k) {
    Vec b[2];
    Panel::load(from + k * Panel::kRowBytes, b);
    hn::Store(b[0], d, to + k * kPanelCols);
    hn::Store(b[1], d, to + k * kPanelCols + kLanes);
  }
}

// ---- Many rows: balanced tiles of up to kMaxRows rows, the depth cut so that a panel's part stays
// in the first-level cache while all tiles use it; sums wait in the second-level cache.

void many_rows(const LinearTile& tile) {
  const size_t rows = tile.row_end - tile.row_begin;
  const size_t n_tiles = (rows + kMaxRows - 1) / kMaxRows;
  const size_t n_depths = std::max<size_t>(1, (tile.w.d_in + kMaxDepth - 1) / kMaxDepth);
  const size_t depth = (tile.w.d_in + n_depths - 1) / n_depths;
  const size_t row_bytes = row_bytes_of(tile.w.dtype);
  const size_t panel_bytes = tile.w.d_in * row_bytes;
  const size_t n_panels = tile.panel_end - tile.panel_begin;
  const bool widen = tile.w.dtype != DType::kFloat32 && n_tiles >= kWidenTiles;
  const size_t sums_floats = (n_depths > 1 ? n_panels : 1) * rows * kPanelCols;
  auto* sums = reinterpret_cast<float*>(
      thread_scratch((sums_floats + (widen ? depth * kPanelCols : 0)) * sizeof(float)));
  float* wide = sums + sums_floats;
  const Finisher finish(tile);
  const MicroKernel* kernels =
      micro_kernels(widen ? PanelKind::kF32 : kind_of(tile.w.dtype), Order::kRows, 1, kMostSharers);

  for (size_t part = 0; part < n_depths; ++part) {
    const size_t k_begin = part * depth;
    const size_t k_count = std::min(depth, tile.w.d_in - k_begin);
    for (size_t panel = tile.panel_begin; panel < tile.panel_end; ++panel) {
      const std::byte* b = tile.w.data + panel * panel_bytes + k_begin * row_bytes;
      // What comes next is fetched meanwhile, each tile its share.
      const std::byte* next = panel + 1 < tile.panel_end ? b + panel_bytes : nullptr;
      if (next == nullptr && part + 1 < n_depths) {
        next = tile.w.data + tile.panel_begin * panel_bytes + (k_begin + k_count) * row_bytes;
      }
      const size_t next_bytes = k_count * row_bytes;
      if (widen) {
        if (tile.w.dtype == DType::kBFloat16) {
          widen_panel<PanelBF16>(b, k_count, wide);
        } else {
          widen_panel<PanelF16>(b, k_count, wide);
        }
        b = reinterpret_cast<const std::byte*>(wide);
      }
      float* panel_sums =
          n_depths > 1 ? sums + (panel - tile.panel_begin) * rows * kPanelCols : sums;
      for (size_t t = 0; t < n_tiles; ++t) {
        const size_t begin = rows * t / n_tiles;
        const size_t count = rows * (t + 1) / n_tiles - begin;
        const size_t share = t * k_count * 32;
        float* acc = panel_sums + begin * kPanelCols;
        kernels[count - 1](
            {.a = tile.x.row(tile.row_begin + begin) + k_begin,
             .a_stride = tile.x.stride,
             .b = b,
             .b_stride = 0,
             .k = k_count,
             .acc = acc,
             .acc_stride = 0,
             .start = part == 0 ? MicroCall::Start::kZero : MicroCall::Start::kAccumulate,
             .scale = nullptr,
             .prefetch = reinterpret_cast<const char*>(
                 next != nullptr && share < next_bytes ? next + share : b)});
        if (part + 1 == n_depths) {
          finish(acc, tile.row_begin + begin, count, panel);
        }
      }
    }
  }
}

// ---- Few rows: the time goes into reading the weights, panel after panel as they lie in memory,
// and well ahead of what is worked on.

// One tile of rows; several panels at once where that takes no more registers than there are.
void stream_one_tile(const LinearTile& tile) {
  const size_t rows = tile.row_end - tile.row_begin;
  const size_t panel_bytes = tile.w.d_in * row_bytes_of(tile.w.dtype);
  auto* sums = reinterpret_cast<float*>(thread_scratch(4 * kMaxRows * kPanelCols * sizeof(float)));
  const Finisher finish(tile);
  size_t panel = tile.panel_begin;
  while (panel < tile.panel_end) {
    int n_panels = 4;
    while (n_panels > 1 && (rows > static_cast<size_t>(most_rows(n_panels)) ||
                            panel + static_cast<size_t>(n_panels) > tile.panel_end)) {
      n_panels /= 2;
    }
    const std::byte* b = tile.w.data + panel * panel_bytes;
    micro_kernels(kind_of(tile.w.dtype), Order::kRows, n_panels,
                  1)[rows - 1]({.a = tile.x.row(tile.row_begin),
                                .a_stride = tile.x.stride,
                                .b = b,
                                .b_stride = static_cast<ptrdiff_t>(panel_bytes),
                                .k = tile.w.d_in,
                                .acc = sums,
                                .acc_stride = static_cast<ptrdiff_t>(rows * kPanelCols),
                                .start = MicroCall::Start::kZero,
                                .scale = nullptr,
                                .prefetch = reinterpret_cast<const char*>(b) + kAhead});
    for (size_t p = 0; p < static_cast<size_t>(n_panels); ++p) {
      finish(sums + p * rows * kPanelCols, tile.row_begin, rows, panel + p);
    }
    panel += static_cast<size_t>(n_panels);
  }
}

// A few tiles of rows on float32 panels. They take turns on short parts of the depth, and each
// fetches its share of what is to come.
void stream_tiles(const LinearTile& tile, size_t n_tiles) {
  const size_t rows = tile.row_end - tile.row_begin;
  const size_t row_bytes = row_bytes_of(DType::kFloat32);
  const int sharers = static_cast<int>(n_tiles);
  const MicroKernel* kernels = micro_kernels(PanelKind::kF32, Order::kRows, 1, sharers);
  const auto lines = static_cast<size_t>(prefetch_lines(static_cast<int>(row_bytes), sharers));
  auto* sums = reinterpret_cast<float*>(thread_scratch(rows * kPanelCols * sizeof(float)));
  const Finisher finish(tile);
  for (size_t panel = tile.panel_begin; panel < tile.panel_end; ++panel) {
    const std::byte* b = tile.w.data + panel * tile.w.d_in * row_bytes;
    for (size_t k = 0; k < tile.w.d_in; k += kStreamDepth) {
      const size_t k_count = std::min(kStreamDepth, tile.w.d_in - k);
      for (size_t t = 0; t < n_tiles; ++t) {
        const size_t begin = rows * t / n_tiles;
        const size_t count = rows * (t + 1) / n_tiles - begin;
        const size_t share = t * (k_count / 4) * lines * 64;
        kernels[count - 1](
            {.a = tile.x.row(tile.row_begin + begin) + k,
             .a_stride = tile.x.stride,
             .b = b + k * row_bytes,
             .b_stride = 0,
             .k = k_count,
             .acc = sums + begin * kPanelCols,
             .acc_stride = 0,
             .start = k == 0 ? MicroCall::Start::kZero : MicroCall::Start::kAccumulate,
             .scale = nullptr,
             .prefetch = reinterpret_cast<const char*>(b + k * row_bytes) + kTilesAhead + share});
      }
    }
    finish(sums, tile.row_begin, rows, panel);
  }
}

bool streams(size_t rows, DType dtype) {
  return rows <= kMaxRows * (dtype == DType::kFloat32 ? kFewTiles : 1);
}

void linear_tile(const LinearTile& tile) {
  const size_t rows = tile.row_end - tile.row_begin;
  const size_t n_tiles = (rows + kMaxRows - 1) / kMaxRows;
  if (n_tiles <= 1) {
    stream_one_tile(tile);
  } else if (streams(rows, tile.w.dtype) && tile.w.d_in > 0) {
    stream_tiles(tile, n_tiles);
  } else {
    many_rows(tile);
  }
}

}  // namespace

const GemmKernels& gemm_kernel_table() {
  static constexpr GemmKernels kTable{.lanes = kLanes,
                                      .max_rows = kMaxRows,
                                      .linear_tile = &linear_tile,
                                      .streams = &streams,
                                      .pack_panel = &pack_panel};
  return kTable;
}

}  // namespace HWY_NAMESPACE
}  // namespace quintet
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quintet {

const GemmKernels& gemm_kernels(Isa isa) {
  return isa == Isa::kAvx512 ? N_AVX3::gemm_kernel_table() : N_AVX2::gemm_kernel_table();
}

}  // namespace quintet
#endif  // HWY_ONCE
