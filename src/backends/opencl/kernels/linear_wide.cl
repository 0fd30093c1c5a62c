// y = epilogue(x * w^T) for devices that are processors: one work-item is a group, holds a tile of
// ROWS rows x one panel in explicit vectors, and streams the panel (weights.cl tells its layout).
// Every element is one chain of fused multiply-adds over k in rising order, wherever it pauses.
#if defined(__OPENCL_VERSION__)

#ifndef LANES
#define LANES 4       // floats of a vector; a panel is two of them wide
#define ROWS 6        // of a tile
#define SUM_ROWS 6    // rows x panels of a group
#define WIDEN_DEPTH 0  // steps of k that are widened once for all tiles of a group; 0: none are
#define STORED 0      // what panels hold: 0 float32, 1 bfloat16, 2 float16
#define GATED 0
#define ACTIVATION 0
#endif

#define JOIN_AS_IS(a, b) a##b
#define JOIN(a, b) JOIN_AS_IS(a, b)
typedef JOIN(float, LANES) Floats;
typedef JOIN(uint, LANES) Words;
#define LOAD JOIN(vload, LANES)
#define STORE JOIN(vstore, LANES)
#define ACTIVATE(x) JOIN(activate, LANES)(ACTIVATION, x)

#define WIDTH (2 * LANES)
#define OUT_WIDTH (GATED ? LANES : WIDTH)  // columns of y that a panel gives
#define HAS_AFFINE 1                       // flags
#define HAS_BIAS 2
#define ACCUMULATES 4

// each(0) each(1) ... of the rows of a tile, each with names of its own: nothing is left to unrolling.
#define ROWS_1(each) each(0)
#define ROWS_2(each) ROWS_1(each) each(1)
#define ROWS_3(each) ROWS_2(each) each(2)
#define ROWS_4(each) ROWS_3(each) each(3)
#define ROWS_5(each) ROWS_4(each) each(4)
#define ROWS_6(each) ROWS_5(each) each(5)
#define ROWS_7(each) ROWS_6(each) each(6)
#define ROWS_8(each) ROWS_7(each) each(7)
#define ROWS_9(each) ROWS_8(each) each(8)
#define ROWS_10(each) ROWS_9(each) each(9)
#define ROWS_11(each) ROWS_10(each) each(10)
#define ROWS_12(each) ROWS_11(each) each(11)
#define EACH_ROW(each) JOIN(ROWS_, ROWS)(each)

// Step k of a panel as two vectors.
#if STORED == 0
typedef Floats Panel;
#define PANEL_STEP 2  // of Panel
#define PANEL_STEP_LINES (LANES / 8)
#define FIRST_OF(w, k) (w)[2 * (k)]
#define SECOND_OF(w, k) (w)[2 * (k) + 1]
#elif STORED == 1
typedef Words Panel;
#define PANEL_STEP 1
#define PANEL_STEP_LINES 1
#define FIRST_OF(w, k) JOIN(widen_bfloat16, LANES)((w)[k] & (Words)(0xFFFFU))
#define SECOND_OF(w, k) JOIN(widen_bfloat16, LANES)((w)[k] >> 16)
#else
typedef half Panel;
#define PANEL_STEP WIDTH
#define PANEL_STEP_LINES 1
#define FIRST_OF(w, k) JOIN(vload_half, LANES)(2 * (k), w)
#define SECOND_OF(w, k) JOIN(vload_half, LANES)(2 * (k) + 1, w)
#endif

#define STEP_BYTES ((int)(PANEL_STEP * sizeof(Panel)))

// Weights are fetched before they are needed. A lone tile fetches so many bytes ahead of itself;
// several fetch, each its share, what comes after the part that they take turns on.
#define BYTES_AHEAD 4096
#define FETCHING_TILES 4
#define LINE 64
#if defined(__clang__)
#define FETCH_LINE(address) __builtin_prefetch(address)
#else
#define FETCH_LINE(address) prefetch(address, LINE)
#endif
#if PANEL_STEP_LINES > 1
#define FETCH(address)           \
  {                              \
    FETCH_LINE(address);         \
    FETCH_LINE((address) + LINE); \
  }
#else
#define FETCH(address) FETCH_LINE(address)
#endif

// At any address. (What vstore does in pieces where a vector is as wide as here.)
typedef struct __attribute__((packed)) {
  Floats value;
} Loose;

DEVICE_FUNCTION void add_or_store(Floats value, int cols, int flags, GLOBAL float* y) {
  if (cols >= LANES) {
    if (flags & ACCUMULATES) value = LOAD(0, y) + value;
    ((GLOBAL Loose*)y)->value = value;
    return;
  }
  float whole[LANES];
  STORE(value, 0, whole);
  for (int j = 0; j < cols; ++j) y[j] = flags & ACCUMULATES ? y[j] + whole[j] : whole[j];
}

// Up to `cols` of a vector, zeros behind.
DEVICE_FUNCTION Floats load_part(GLOBAL const float* from, int cols) {
  if (cols >= LANES) return LOAD(0, from);
  float whole[LANES];
  for (int j = 0; j < LANES; ++j) whole[j] = j < cols ? from[j] : 0.0F;
  return LOAD(0, whole);
}

__attribute__((reqd_work_group_size(1, 1, 1)))
KERNEL linear_wide(GLOBAL const Panel* w, GLOBAL const float* x, long x_offset, long x_stride,
                   GLOBAL const float* bias, long bias_offset, long bias_stride, GLOBAL float* y, long y_offset, long y_stride,
                   float scale, int flags, int n_rows, int d_in, int d_out, int block_rows,
                   int block_panels, int depth) {
  LOCAL Floats sums[2 * SUM_ROWS];  // [panels of the group][rows, of whole tiles][2]
#if WIDEN_DEPTH > 0
  LOCAL Floats wide[2 * WIDEN_DEPTH];
#define FIRST(k) wide[2 * (k)]
#define SECOND(k) wide[2 * (k) + 1]
#else
#define FIRST(k) FIRST_OF(b, k)
#define SECOND(k) SECOND_OF(b, k)
#endif
  const int n_panels = (d_out + OUT_WIDTH - 1) / OUT_WIDTH;
  const int first_panel = GROUP_ID(0) * block_panels;
  const int end_panel = min(first_panel + block_panels, n_panels);
  const int first_row = GROUP_ID(1) * block_rows;
  const int count = min(block_rows, n_rows - first_row);
  const int sum_rows = (block_rows + ROWS - 1) / ROWS * ROWS;
  x += x_offset + (long)first_row * x_stride;
  y += y_offset + (long)first_row * y_stride;

  int k_begin = 0;
  do {
    const int n = min(depth, d_in - k_begin);
    for (int panel = first_panel; panel < end_panel; ++panel) {
      GLOBAL const Panel* b = w + ((long)panel * d_in + k_begin) * PANEL_STEP;
      LOCAL_POINTER Floats* panel_sums = sums + 2 * (panel - first_panel) * sum_rows;
#if WIDEN_DEPTH > 0
      for (int k = 0; k < n; ++k) {
        wide[2 * k] = FIRST_OF(b, k);
        wide[2 * k + 1] = SECOND_OF(b, k);
      }
#endif
      GLOBAL const Panel* next = b + (long)n * PANEL_STEP;
      if (panel + 1 < end_panel) {
        next = b + (long)d_in * PANEL_STEP;
      } else if (k_begin + n < d_in) {
        next = w + ((long)first_panel * d_in + k_begin + n) * PANEL_STEP;
      }
      const int n_tiles = (count + ROWS - 1) / ROWS;
      const int fetch_step = STEP_BYTES / min(n_tiles, FETCHING_TILES);
      GLOBAL const char* fetch = (GLOBAL const char*)(n_tiles == 1 ? b : next);
      if (n_tiles == 1) fetch += BYTES_AHEAD;
      for (int row = 0; row < count; row += ROWS) {
        LOCAL_POINTER Floats* tile = panel_sums + 2 * row;
        // Rows past the last one repeat it; nobody looks at their sums.
#define START(r)                                                                        \
  GLOBAL const float* x##r = x + (long)min(row + r, count - 1) * x_stride + k_begin;    \
  Floats p##r = 0.0F;                                                                   \
  Floats q##r = 0.0F;
#define RESUME(r)          \
  p##r = tile[2 * r];      \
  q##r = tile[2 * r + 1];
#define ADD_STEP(r)                      \
  {                                      \
    const Floats a = (Floats)(x##r[k]);  \
    p##r = FUSED(a, b0, p##r);           \
    q##r = FUSED(a, b1, q##r);           \
  }
#define PAUSE(r)           \
  tile[2 * r] = p##r;      \
  tile[2 * r + 1] = q##r;
        EACH_ROW(START)
        if (k_begin > 0) {
          EACH_ROW(RESUME)
        }
        for (int k = 0; k < n; ++k) {
          FETCH(fetch + k * fetch_step);
          const Floats b0 = FIRST(k);
          const Floats b1 = SECOND(k);
          EACH_ROW(ADD_STEP)
        }
        EACH_ROW(PAUSE)
        fetch = row < (FETCHING_TILES - 1) * ROWS ? fetch + n * fetch_step : (GLOBAL const char*)b;
      }
      if (k_begin + n < d_in) continue;

      const int column = panel * OUT_WIDTH;
      const int cols = d_out - column;
      Floats bias0 = 0.0F;
      Floats bias1 = 0.0F;
      if (flags & HAS_BIAS) {
        bias0 = load_part(bias + bias_offset + column, cols);
        bias1 = load_part(bias + bias_offset + column + LANES, cols - LANES);
      }
      for (int row = 0; row < count; ++row) {
        Floats p = panel_sums[2 * row];
        Floats q = panel_sums[2 * row + 1];
        GLOBAL float* to = y + (long)row * y_stride + column;
        if (flags & HAS_AFFINE) p = FUSED(p, (Floats)(scale), bias0);
#if GATED
        add_or_store(ACTIVATE(p) * q, cols, flags, to);
#else
        if (flags & HAS_AFFINE) q = FUSED(q, (Floats)(scale), bias1);
        add_or_store(ACTIVATE(p), cols, flags, to);
        if (cols > LANES) add_or_store(ACTIVATE(q), cols - LANES, flags, to + LANES);
#endif
      }
    }
    k_begin += n;
  } while (k_begin < d_in);
}

#endif
