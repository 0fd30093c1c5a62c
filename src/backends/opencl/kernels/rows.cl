// What is done row by row: taking rows of a table, norms, pooling. A row is the work of sixteen
// lanes (arithmetic.h); rows that fill the last group up are computed, but not stored.

#define COLUMN_PARTS GROUP_COUNT(0)  // where sums do not tie a row's columns together
#define COLUMN_PART GROUP_ID(0)

// y[i] = table[ids[i]], with ACCUMULATE y[i] += that; TABLE_BFLOAT16, TABLE_FLOAT16: its elements.
#if defined(TABLE_BFLOAT16) || defined(TABLE_FLOAT16)
typedef bits16 table_element;
#else
typedef float table_element;
#endif

DEVICE_FUNCTION lanes16 load_table_lanes(GLOBAL const table_element* x, int i, int n) {
#if defined(TABLE_BFLOAT16)
  return WIDEN_BFLOAT16(load_bits16_lanes(x, i, n));
#elif defined(TABLE_FLOAT16)
  return WIDEN_FLOAT16(load_bits16_lanes(x, i, n));
#else
  return load_lanes(x, i, n, 0.0F);
#endif
}

KERNEL embedding(GLOBAL const int* ids, GLOBAL const table_element* table, long table_offset,
                 long table_stride, MATRIX(y), int rows, int cols) {
  const int row = (int)GLOBAL_ID(1);
  if (row >= rows) return;
  GLOBAL const table_element* from = ROW_OF(table, ids[row]);
  GLOBAL float* to = ROW_OF(y, row);
  for (int i = 16 * COLUMN_PART; i < cols; i += 16 * COLUMN_PARTS) {
#if defined(ACCUMULATE)
    store_lanes(load_lanes(to, i, cols, 0.0F) + load_table_lanes(from, i, cols), to, i, cols);
#else
    store_lanes(load_table_lanes(from, i, cols), to, i, cols);
#endif
  }
}

KERNEL rms_norm(MATRIX(x), MATRIX(weight), float eps, MATRIX(y), int rows, int cols) {
  LANE_SCRATCH;
  const int row = (int)GLOBAL_ID(1);
  GLOBAL const float* from = ROW_OF(x, min(row, rows - 1));
  GLOBAL const float* scale = ROW_OF(weight, 0);
  lanes16 squares = (lanes16)(0.0F);
  for (int i = 0; i < cols; i += 16) {
    const lanes16 v = load_lanes(from, i, cols, 0.0F);
    squares = FUSED(v, v, squares);
  }
  const float mean = SUM_ACROSS(squares) / (float)cols;
  const float factor = 1.0F / SQUARE_ROOT(mean + eps);
  if (row >= rows) return;
  GLOBAL float* to = ROW_OF(y, row);
  for (int i = 0; i < cols; i += 16) {
    const lanes16 scaled = load_lanes(from, i, cols, 0.0F) * factor;
    store_lanes(scaled * load_lanes(scale, i, cols, 0.0F), to, i, cols);
  }
}

KERNEL layer_norm(MATRIX(x), MATRIX(weight), MATRIX(bias), float eps, MATRIX(y), int rows,
                  int cols) {
  LANE_SCRATCH;
  const int row = (int)GLOBAL_ID(1);
  GLOBAL const float* from = ROW_OF(x, min(row, rows - 1));
  GLOBAL const float* scale = ROW_OF(weight, 0);
  GLOBAL const float* shift = ROW_OF(bias, 0);
  lanes16 sums = (lanes16)(0.0F);
  for (int i = 0; i < cols; i += 16) sums = sums + load_lanes(from, i, cols, 0.0F);
  const float mean = SUM_ACROSS(sums) / (float)cols;
  lanes16 squares = (lanes16)(0.0F);
  for (int i = 0; i < cols; i += 16) {
    const lanes16 distance = load_lanes(from, i, cols, mean) - mean;
    squares = FUSED(distance, distance, squares);
  }
  const float variance = SUM_ACROSS(squares) / (float)cols;
  const float factor = 1.0F / SQUARE_ROOT(variance + eps);
  if (row >= rows) return;
  GLOBAL float* to = ROW_OF(y, row);
  for (int i = 0; i < cols; i += 16) {
    const lanes16 normal = (load_lanes(from, i, cols, 0.0F) - mean) * factor;
    store_lanes(FUSED(normal, load_lanes(scale, i, cols, 0.0F), load_lanes(shift, i, cols, 0.0F)),
                to, i, cols);
  }
}

// y[s] = the mean of rows [begin[s], end[s]) of x, added in order; no rows: zeros.
KERNEL pool_rows(MATRIX(x), GLOBAL const int* begin, GLOBAL const int* end, MATRIX(y), int rows,
                 int cols) {
  const int s = (int)GLOBAL_ID(1);
  if (s >= rows) return;
  const int n = end[s] - begin[s];
  for (int i = 16 * COLUMN_PART; i < cols; i += 16 * COLUMN_PARTS) {
    lanes16 sum = (lanes16)(0.0F);
    for (int row = begin[s]; row < end[s]; ++row) {
      sum = sum + load_lanes(ROW_OF(x, row), i, cols, 0.0F);
    }
    if (n > 1) sum = sum / (float)n;
    store_lanes(sum, ROW_OF(y, s), i, cols);
  }
}

// y[i] = y[i] / its Euclidean norm; zeros stay zeros.
KERNEL normalize_rows(MATRIX(y), int rows, int cols) {
  LANE_SCRATCH;
  const int row = (int)GLOBAL_ID(1);
  GLOBAL float* values = ROW_OF(y, min(row, rows - 1));
  lanes16 squares = (lanes16)(0.0F);
  for (int i = 0; i < cols; i += 16) {
    const lanes16 v = load_lanes(values, i, cols, 0.0F);
    squares = FUSED(v, v, squares);
  }
  const float norm = SQUARE_ROOT(SUM_ACROSS(squares));
  if (row >= rows || !(norm > 0.0F)) return;
  for (int i = 0; i < cols; i += 16) {
    store_lanes(load_lanes(values, i, cols, 0.0F) / norm, values, i, cols);
  }
}
