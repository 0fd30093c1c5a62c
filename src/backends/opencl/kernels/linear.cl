// y = epilogue(x * w^T) for devices of many small work-items. A group computes GROUP_ROWS *
// TILE_ROWS rows x PANELS panels of columns (weights.cl tells their layout) from parts of x and w in
// local memory; a work-item holds TILE_ROWS rows x TILE_WORDS pairs of columns, one of either half
// of a panel, in registers. Few rows share no weights, so with GROUP_ROWS 1 these are read from
// where they lie. Every element is one chain of fused multiply-adds over k in rising order.
#ifndef WIDTH
#define WIDTH 64      // columns of a panel
#define PANELS 1      // of a group
#define GROUP_COLS 16  // work-items of a group side by side
#define GROUP_ROWS 16  // and below each other
#define TILE_ROWS 4
#define DEPTH 16      // steps of k whose parts lie in local memory
#define STORED 0      // what panels hold: 0 float32, 1 bfloat16, 2 float16
#define GATED 0
#define ACTIVATION 0
#endif

#define HALF (WIDTH / 2)
#define TILE_WORDS (PANELS * HALF / GROUP_COLS)
#define BLOCK_ROWS (GROUP_ROWS * TILE_ROWS)
#define GROUP_SIZE (GROUP_COLS * GROUP_ROWS)
#define OUT_WIDTH (GATED ? HALF : WIDTH)  // columns of y that a panel gives
#define HAS_AFFINE 1                      // flags
#define HAS_BIAS 2
#define ACCUMULATES 4

// Pair j of columns of a step of a panel.
#if STORED == 1
typedef bits32 Panel;
#define PANEL_STEP HALF  // of Panel
#define FIRST_OF(w, j) widen_bfloat16((w)[j] & 0xFFFFU)
#define SECOND_OF(w, j) widen_bfloat16((w)[j] >> 16)
#else
#define PANEL_STEP WIDTH
#if STORED == 0
typedef float Panel;
#define WIDENED(value) (value)
#else
typedef bits16 Panel;
#define WIDENED(value) widen_float16((bits32)(value))
#endif
#define FIRST_OF(w, j) WIDENED((w)[j])
#define SECOND_OF(w, j) WIDENED((w)[(j) + HALF])
#endif

#if defined(__OPENCL_VERSION__)
__attribute__((reqd_work_group_size(GROUP_COLS, GROUP_ROWS, 1)))
#endif
KERNEL linear_tiled(GLOBAL const Panel* w, GLOBAL const float* x, long x_offset, long x_stride,
                    GLOBAL const float* bias, long bias_offset, long bias_stride, GLOBAL float* y, long y_offset, long y_stride,
                    float scale, int flags, int n_rows, int d_in, int d_out) {
  LOCAL float x_part[DEPTH * (BLOCK_ROWS + 1)];  // [k][row]
#if GROUP_ROWS > 1
  LOCAL float w_part[DEPTH * PANELS * WIDTH];  // [k][panel][WIDTH]
#endif
  const int item_col = LOCAL_ID(0);
  const int item_row = LOCAL_ID(1);
  const int item = item_row * GROUP_COLS + item_col;
  const int n_panels = (d_out + OUT_WIDTH - 1) / OUT_WIDTH;
  const int first_panel = GROUP_ID(0) * PANELS;
  const int first_row = GROUP_ID(1) * BLOCK_ROWS;

  float sums[TILE_ROWS][TILE_WORDS][2];
#pragma unroll
  for (int r = 0; r < TILE_ROWS; ++r) {
#pragma unroll
    for (int c = 0; c < TILE_WORDS; ++c) {
      sums[r][c][0] = 0.0F;
      sums[r][c][1] = 0.0F;
    }
  }

  for (int k_begin = 0; k_begin < d_in; k_begin += DEPTH) {
    const int n = d_in - k_begin < DEPTH ? d_in - k_begin : DEPTH;
    // Neighbours read neighbouring elements of a row. Rows and panels past the last repeat it.
    for (int i = item; i < DEPTH * BLOCK_ROWS; i += GROUP_SIZE) {
      const int k = i % DEPTH;
      const int r = i / DEPTH;
      const int row = first_row + r < n_rows ? first_row + r : n_rows - 1;
      if (k < n) {
        x_part[k * (BLOCK_ROWS + 1) + r] = x[x_offset + (long)row * x_stride + k_begin + k];
      }
    }
#if GROUP_ROWS > 1
    for (int i = item; i < DEPTH * PANELS * HALF; i += GROUP_SIZE) {
      const int j = i % HALF;
      const int p = i / HALF % PANELS;
      const int k = i / (HALF * PANELS);
      const int panel = first_panel + p < n_panels ? first_panel + p : n_panels - 1;
      if (k < n) {
        GLOBAL const Panel* from = w + ((long)panel * d_in + k_begin + k) * PANEL_STEP;
        w_part[(k * PANELS + p) * WIDTH + j] = FIRST_OF(from, j);
        w_part[(k * PANELS + p) * WIDTH + HALF + j] = SECOND_OF(from, j);
      }
    }
#endif
    BARRIER();
    for (int k = 0; k < n; ++k) {
      float a[TILE_ROWS];
#pragma unroll
      for (int r = 0; r < TILE_ROWS; ++r) {
        a[r] = x_part[k * (BLOCK_ROWS + 1) + item_row + r * GROUP_ROWS];
      }
#pragma unroll
      for (int c = 0; c < TILE_WORDS; ++c) {
        const int word = c * GROUP_COLS + item_col;
#if GROUP_ROWS > 1
        const int at = (k * PANELS + word / HALF) * WIDTH + word % HALF;
        const float b0 = w_part[at];
        const float b1 = w_part[at + HALF];
#else
        const int panel = first_panel + word / HALF;
        GLOBAL const Panel* from =
            w + ((long)(panel < n_panels ? panel : n_panels - 1) * d_in + k_begin + k) * PANEL_STEP;
        const float b0 = FIRST_OF(from, word % HALF);
        const float b1 = SECOND_OF(from, word % HALF);
#endif
#pragma unroll
        for (int r = 0; r < TILE_ROWS; ++r) {
          sums[r][c][0] = FUSED(a[r], b0, sums[r][c][0]);
          sums[r][c][1] = FUSED(a[r], b1, sums[r][c][1]);
        }
      }
    }
    BARRIER();
  }

#pragma unroll
  for (int r = 0; r < TILE_ROWS; ++r) {
    const int row = first_row + item_row + r * GROUP_ROWS;
#pragma unroll
    for (int c = 0; c < TILE_WORDS; ++c) {
      const int word = c * GROUP_COLS + item_col;
      const int panel = first_panel + word / HALF;
#pragma unroll
      for (int side = 0; side < (GATED ? 1 : 2); ++side) {
        const int column = panel * OUT_WIDTH + word % HALF + side * HALF;
        if (row >= n_rows || column >= d_out) continue;
        float value = sums[r][c][side];
        if (flags & HAS_AFFINE) {
          value = FUSED(value, scale, flags & HAS_BIAS ? bias[bias_offset + column] : 0.0F);
        }
        value = activate(ACTIVATION, value);
        if (GATED) value *= sums[r][c][1];
        GLOBAL float* to = y + y_offset + (long)row * y_stride + column;
        *to = flags & ACCUMULATES ? *to + value : value;
      }
    }
  }
}
