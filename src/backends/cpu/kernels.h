// What the kernels, compiled once per instruction set, are handed: plain pointers and sizes.
#ifndef QUINTET_BACKENDS_CPU_KERNELS_H_
#define QUINTET_BACKENDS_CPU_KERNELS_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "backends/cpu/isa.h"
#include "backends/device.h"

namespace quintet {

// A matrix of weights in panels of 2 vectors of columns of y: [n_panels][d_in][2 * lanes]. With a
// gate the first vector of a panel holds columns of wi_0, the second the same columns of wi_1.
// bfloat16 panels hold pairs: the low half of a 32-bit word is of the first vector, the high half
// of the second. What lies past the last column is zero.
struct PanelView {
  const std::byte* data = nullptr;
  DType dtype = DType::kFloat32;
  bool gated = false;
  size_t d_in = 0;
  size_t d_out = 0;  // columns of y
  size_t n_panels = 0;
};

struct MatrixView {  // row-major float32
  float* data = nullptr;
  ptrdiff_t stride = 0;
  float* row(size_t i) const { return data + static_cast<ptrdiff_t>(i) * stride; }
};

// Epilogue, its bias as an address: [d_out], or null.
struct TileEpilogue {
  Activation activation = Activation::kNone;
  bool accumulate = false;
  float scale = 1.0F;
  const float* bias = nullptr;
};

// y = epilogue(x * panels), rows [row_begin, row_end) by panels [panel_begin, panel_end).
struct LinearTile {
  MatrixView x;
  MatrixView y;
  PanelView w;
  TileEpilogue epilogue;
  size_t row_begin = 0;
  size_t row_end = 0;
  size_t panel_begin = 0;
  size_t panel_end = 0;
};

// The columns of one panel as the file holds them, and where they go: rows of w, or columns of a w
// that lies transposed.
struct PackTask {
  const std::byte* columns[32] = {};  // where each starts; null: zeros
  size_t step = 0;                    // bytes from one element of a column to the next
  DType source = DType::kFloat32;
  DType target = DType::kFloat32;
  size_t n = 0;  // elements of each column
  std::byte* panel = nullptr;
};

struct GemmKernels {
  size_t lanes;     // floats in a vector
  size_t max_rows;  // of the inner loop's tile
  void (*linear_tile)(const LinearTile& tile);
  // Whether a product of so many rows reads its panels once, one after the other: then a tile of
  // any number of panels is as good as several, and all rows belong into one.
  bool (*streams)(size_t rows, DType dtype);
  // False: a finite value does not fit into the target's range (float16).
  bool (*pack_panel)(const PackTask& task);
};
const GemmKernels& gemm_kernels(Isa isa);

// Queries [row_begin, row_end) of one sequence against all its keys, for one head. q, k, v, y are
// the columns of the head; row 0 of k and v is the sequence's first key.
struct AttentionSpan {
  MatrixView q;
  MatrixView k;
  MatrixView v;
  MatrixView y;
  size_t n_queries = 0;  // rows of q and y
  size_t n_keys = 0;
  size_t d_kv = 0;
  float scale = 1.0F;
  bool causal = false;
  const float* bias = nullptr;  // of the head; bias[key position - query position], or null
  const int32_t* query_positions = nullptr;  // [n_queries]
  const int32_t* key_positions = nullptr;    // [n_keys]
};

struct AttentionKernels {
  size_t span_rows;  // queries that share a pass over the keys, at most
  void (*span)(const AttentionSpan& span);
};
const AttentionKernels& attention_kernels(Isa isa);

struct RowKernels {
  void (*rms_norm)(const float* x, const float* weight, float eps, size_t n, float* y);
  void (*layer_norm)(const float* x, const float* weight, const float* bias, float eps, size_t n,
                     float* y);
  void (*widen)(const std::byte* x, DType dtype, size_t n, float* y);
  void (*add)(const float* x, size_t n, float* y);  // y += x
  float (*sum_of_squares)(const float* x, size_t n);
};
const RowKernels& row_kernels(Isa isa);

}  // namespace quintet

#endif  // QUINTET_BACKENDS_CPU_KERNELS_H_
