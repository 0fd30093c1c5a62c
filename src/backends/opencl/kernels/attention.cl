// Softmax attention over packed sequences, streamed over key blocks; two forms that do one
// arithmetic. In attend_lanes, for devices with wide vectors, a work-item is a tile of query rows,
// which are the lanes of its vectors, so many at a time. In attend_groups a work-group is a tile:
// scores are spread over (row, key), the context over (row, column).
//
// A score is one chain over d_kv; maximum, exponentials and sums run over the keys in blocks counted
// from the sequence's start, the context is one chain over the keys, rescaled between blocks. So no
// bit of a row depends on the rows beside it.
//
// Defined: D_KV; LANES and PARTS, or GROUP_X, GROUP_Y and ROWS.
// tiles: of each its first row in the batch, its number of rows, the first key and the end of the
// keys of its sequence. Dimension 0 of the grid: tiles, dimension 1: heads.

#define BLOCK_KEYS 120
#define MINUS_INFINITY (-INFINITY)

#define ATTENTION_ARGUMENTS                                                                    \
  MATRIX(q), MATRIX(k), MATRIX(v), MATRIX(y), MATRIX(bias), int bias_cols, /* 0: no bias */    \
      GLOBAL const int *positions, GLOBAL const int *tiles, int first_row, float scale, int causal

#if defined(LANES)

#define JOIN(a, b) a##b
#define WITH_LANES(a, lanes) JOIN(a, lanes)
#define FLOATS WITH_LANES(float, LANES)
#define INTS WITH_LANES(int, LANES)
#define EXP_BELOW_LIMIT WITH_LANES(exp_below_limit, LANES)
#define LOAD WITH_LANES(vload, LANES)
#define STORE WITH_LANES(vstore, LANES)
#define INLINE DEVICE_FUNCTION __attribute__((always_inline))

#define MAX_VECS 2
#define WIDTH (MAX_VECS * LANES)
#if LANES == 16
#define TILE 8  // chains of each lane at a time: as many as there are registers for
#else
#define TILE 4
#endif

// A part of a tile: up to WIDTH rows, in `vecs` vectors, a constant wherever these functions are
// expanded. The parts of a tile share a pass over the keys.
typedef struct {
  LOCAL FLOATS* q;        // [D_KV][vecs], scaled
  LOCAL FLOATS* context;  // [D_KV][vecs], not yet divided by the sum
  LOCAL FLOATS* highest;  // [vecs], the maximum so far
  LOCAL FLOATS* sum;      // [vecs]
  LOCAL FLOATS* scores;   // [BLOCK_KEYS][vecs], then exp(score - maximum)
  LOCAL float* window;    // of the bias: [BLOCK_KEYS + WIDTH], see fill_window
  LOCAL int* positions;   // [WIDTH]; lanes past the last row repeat it
  int rows;
  bool contiguous;  // the rows' positions rise by one
} Lanes;

typedef struct {
  GLOBAL const float* bias;  // of the head; or 0
  int cols;
  GLOBAL const int* positions;  // of the block's keys
  int n_keys;
  bool causal;
} Keys;

INLINE void transpose(FLOATS* r) {
  // Row and lane number, read as one number, are rotated by one bit, as often as a lane has bits.
#pragma unroll
  for (int step = 1; step < LANES; step *= 2) {
    FLOATS next[LANES];
#pragma unroll
    for (int i = 0; i < LANES / 2; ++i) {
      next[2 * i].even = r[i].lo;
      next[2 * i].odd = r[i + LANES / 2].lo;
      next[2 * i + 1].even = r[i].hi;
      next[2 * i + 1].odd = r[i + LANES / 2].hi;
    }
#pragma unroll
    for (int i = 0; i < LANES; ++i) r[i] = next[i];
  }
}

INLINE void fill_q(Lanes at, GLOBAL const float* q, long stride, float scale, const int vecs) {
  for (int v = 0; v < vecs; ++v) {
    const int first = v * LANES;
    int d = 0;
    for (; d + LANES <= D_KV; d += LANES) {
      FLOATS r[LANES];
#pragma unroll
      for (int i = 0; i < LANES; ++i) {
        r[i] = LOAD(0, q + min(first + i, at.rows - 1) * stride + d) * scale;
      }
      transpose(r);
#pragma unroll
      for (int i = 0; i < LANES; ++i) at.q[(d + i) * vecs + v] = r[i];
    }
    LOCAL float* single = (LOCAL float*)at.q;
    for (; d < D_KV; ++d) {
      for (int i = 0; i < LANES; ++i) {
        single[(d * vecs + v) * LANES + i] = q[min(first + i, at.rows - 1) * stride + d] * scale;
      }
    }
  }
}

// y = context / sum, turned back to rows; adding 0 makes a negative zero positive, as a masked key
// would.
INLINE void store_rows(Lanes at, GLOBAL float* y, long stride, const int vecs) {
  for (int v = 0; v < vecs; ++v) {
    const FLOATS factor = (FLOATS)(1.0F) / at.sum[v];
    const int first = v * LANES;
    int d = 0;
    for (; d + LANES <= D_KV; d += LANES) {
      FLOATS r[LANES];
#pragma unroll
      for (int i = 0; i < LANES; ++i) {
        r[i] = FUSED(at.context[(d + i) * vecs + v], factor, (FLOATS)(0.0F));
      }
      transpose(r);
#pragma unroll
      for (int i = 0; i < LANES; ++i) {
        if (first + i < at.rows) STORE(r[i], 0, y + (first + i) * stride + d);
      }
    }
    LOCAL float* single = (LOCAL float*)at.context;
    for (; d < D_KV; ++d) {
      at.context[d * vecs + v] = FUSED(at.context[d * vecs + v], factor, (FLOATS)(0.0F));
      for (int i = first; i < min(first + LANES, at.rows); ++i) {
        y[i * stride + d] = single[d * vecs * LANES + i];
      }
    }
  }
}

// The values of all distances between the block's keys and the rows, rising with the row: lane i
// and key j meet in window[n_keys - 1 - j + i].
INLINE void fill_window(Lanes at, Keys keys) {
  const int nearest = keys.cols / 2 + keys.positions[keys.n_keys - 1] - at.positions[0];
  const int n = keys.n_keys - 1 + WIDTH;
  const int there = min(n, nearest + 1);  // lanes past the last row may ask for more
  for (int i = 0; i < there; ++i) at.window[i] = keys.bias[nearest - i];
  for (int i = there; i < n; ++i) at.window[i] = 0.0F;
}

// The same for key j alone, where positions have holes: lane i in window[i].
INLINE void fill_window_of_key(Lanes at, Keys keys, int j) {
  const int zero = keys.cols / 2 + keys.positions[j];
  for (int i = 0; i < WIDTH; ++i) at.window[i] = keys.bias[zero - at.positions[i]];
}

// scores = k q^T, TILE keys at a time; the last ones of a tile may be the last key again.
INLINE void score_keys(Lanes at, GLOBAL const float* k, long stride, int n_keys, const int vecs) {
  for (int j = 0; j < n_keys; j += TILE) {
    GLOBAL const float* from[TILE];
    FLOATS sums[TILE][MAX_VECS];
#pragma unroll
    for (int i = 0; i < TILE; ++i) {
      from[i] = k + min(j + i, n_keys - 1) * stride;
#pragma unroll
      for (int v = 0; v < vecs; ++v) sums[i][v] = (FLOATS)(0.0F);
    }
    for (int d = 0; d < D_KV; ++d) {
#pragma unroll
      for (int i = 0; i < TILE; ++i) {
#pragma unroll
        for (int v = 0; v < vecs; ++v) {
          sums[i][v] = FUSED((FLOATS)(from[i][d]), at.q[d * vecs + v], sums[i][v]);
        }
      }
    }
#pragma unroll
    for (int i = 0; i < TILE; ++i) {
#pragma unroll
      for (int v = 0; v < vecs; ++v) at.scores[(j + i) * vecs + v] = sums[i][v];
    }
  }
}

// Adds the bias, hides later keys, and turns scores to exp(score - maximum), with maximum, sum and
// the factor for what was summed before brought up to date.
INLINE void soften(Lanes at, Keys keys, FLOATS* factor, const int vecs) {
  const bool windowed = keys.bias != 0 && at.contiguous &&
                        keys.positions[keys.n_keys - 1] - keys.positions[0] == keys.n_keys - 1;
  if (windowed) fill_window(at, keys);
  const bool mask = keys.causal && keys.positions[keys.n_keys - 1] > at.positions[0];
  FLOATS highest[MAX_VECS];
  FLOATS sum[MAX_VECS];
#pragma unroll
  for (int v = 0; v < vecs; ++v) highest[v] = at.highest[v];
  for (int j = 0; j < keys.n_keys; ++j) {
    if (keys.bias != 0 && !windowed) fill_window_of_key(at, keys, j);
    LOCAL const float* bias = at.window + (windowed ? keys.n_keys - 1 - j : 0);
#pragma unroll
    for (int v = 0; v < vecs; ++v) {
      FLOATS score = at.scores[j * vecs + v];
      if (keys.bias != 0) score += LOAD(v, bias);
      if (mask) {
        const INTS row = LOAD(v, at.positions);
        score = (INTS)(keys.positions[j]) > row ? (FLOATS)(MINUS_INFINITY) : score;
      }
      at.scores[j * vecs + v] = score;
      highest[v] = highest[v] < score ? score : highest[v];
    }
  }
#pragma unroll
  for (int v = 0; v < vecs; ++v) {
    factor[v] = EXP_BELOW_LIMIT(at.highest[v] - highest[v]);
    at.highest[v] = highest[v];
    sum[v] = at.sum[v] * factor[v];
  }
  for (int j = 0; j < keys.n_keys; ++j) {
#pragma unroll
    for (int v = 0; v < vecs; ++v) {
      const FLOATS share = EXP_BELOW_LIMIT(at.scores[j * vecs + v] - highest[v]);
      at.scores[j * vecs + v] = share;
      sum[v] += share;
    }
  }
#pragma unroll
  for (int v = 0; v < vecs; ++v) at.sum[v] = sum[v];
}

// Columns [column, column + n) of the context, n being a constant.
INLINE void add_columns(Lanes at, GLOBAL const float* values, long stride, int n_keys,
                        const FLOATS* factor, bool first, int column, const int n,
                        const int vecs) {
  FLOATS sums[TILE][MAX_VECS];
#pragma unroll
  for (int i = 0; i < n; ++i) {
#pragma unroll
    for (int v = 0; v < vecs; ++v) {
      sums[i][v] = first ? (FLOATS)(0.0F) : at.context[(column + i) * vecs + v] * factor[v];
    }
  }
  GLOBAL const float* from = values + column;
  for (int j = 0; j < n_keys; ++j, from += stride) {
#pragma unroll
    for (int i = 0; i < n; ++i) {
#pragma unroll
      for (int v = 0; v < vecs; ++v) {
        sums[i][v] = FUSED((FLOATS)(from[i]), at.scores[j * vecs + v], sums[i][v]);
      }
    }
  }
#pragma unroll
  for (int i = 0; i < n; ++i) {
#pragma unroll
    for (int v = 0; v < vecs; ++v) at.context[(column + i) * vecs + v] = sums[i][v];
  }
}

// One part and one block of keys: k and v from the block's first key on.
INLINE void attend_block(Lanes at, Keys keys, GLOBAL const float* k, long k_stride,
                         GLOBAL const float* v, long v_stride, bool first, const int vecs) {
  FLOATS factor[MAX_VECS];
  score_keys(at, k, k_stride, keys.n_keys, vecs);
  soften(at, keys, factor, vecs);
  for (int column = 0; column + TILE <= D_KV; column += TILE) {
    add_columns(at, v, v_stride, keys.n_keys, factor, first, column, TILE, vecs);
  }
  if (D_KV % TILE != 0) {
    add_columns(at, v, v_stride, keys.n_keys, factor, first, D_KV / TILE * TILE, D_KV % TILE, vecs);
  }
}

KERNEL attend_lanes(ATTENTION_ARGUMENTS) {
  LOCAL FLOATS scaled_q[PARTS * D_KV * MAX_VECS];
  LOCAL FLOATS context[PARTS * D_KV * MAX_VECS];
  LOCAL FLOATS highest[PARTS * MAX_VECS];
  LOCAL FLOATS sum[PARTS * MAX_VECS];
  LOCAL FLOATS scores[BLOCK_KEYS * MAX_VECS];
  LOCAL float window[BLOCK_KEYS + WIDTH];
  LOCAL int row_positions[PARTS * WIDTH];
  GLOBAL const int* tile = tiles + 4 * GROUP_ID(0);
  const int row = tile[0];
  const int rows = tile[1];
  const int key_begin = tile[2];
  const int key_end = tile[3];
  const int column = GROUP_ID(1) * D_KV;
  q += q_offset + (row - first_row) * q_stride + column;
  k += k_offset + column;
  v += v_offset + column;
  y += y_offset + (row - first_row) * y_stride + column;
  Lanes parts[PARTS];
  for (int p = 0; p * WIDTH < rows; ++p) {
    Lanes at;
    at.q = scaled_q + p * D_KV * MAX_VECS;
    at.context = context + p * D_KV * MAX_VECS;
    at.highest = highest + p * MAX_VECS;
    at.sum = sum + p * MAX_VECS;
    at.scores = scores;
    at.window = window;
    at.positions = row_positions + p * WIDTH;
    at.rows = min(WIDTH, rows - p * WIDTH);
    GLOBAL const int* from = positions + row + p * WIDTH;
    at.contiguous = from[at.rows - 1] - from[0] == at.rows - 1;
    for (int i = 0; i < WIDTH; ++i) at.positions[i] = from[min(i, at.rows - 1)];
    for (int i = 0; i < MAX_VECS; ++i) {
      at.highest[i] = (FLOATS)(MINUS_INFINITY);
      at.sum[i] = (FLOATS)(0.0F);
    }
    fill_q(at, q + p * WIDTH * q_stride, q_stride, scale, at.rows <= LANES ? 1 : MAX_VECS);
    parts[p] = at;
  }
  Keys keys;
  keys.bias = bias_cols > 0 ? bias + bias_offset + GROUP_ID(1) * bias_stride : 0;
  keys.cols = bias_cols;
  keys.causal = causal != 0;
  for (int key = key_begin; key < key_end; key += BLOCK_KEYS) {
    keys.positions = positions + key;
    keys.n_keys = min(BLOCK_KEYS, key_end - key);
    GLOBAL const float* block_k = k + key * k_stride;
    GLOBAL const float* block_v = v + key * v_stride;
    for (int p = 0; p * WIDTH < rows; ++p) {
      const Lanes at = parts[p];
      if (keys.causal && keys.positions[0] > at.positions[WIDTH - 1]) continue;
      if (at.rows <= LANES) {
        attend_block(at, keys, block_k, k_stride, block_v, v_stride, key == key_begin, 1);
      } else {
        attend_block(at, keys, block_k, k_stride, block_v, v_stride, key == key_begin, MAX_VECS);
      }
    }
  }
  for (int p = 0; p * WIDTH < rows; ++p) {
    const Lanes at = parts[p];
    store_rows(at, y + p * WIDTH * y_stride, y_stride, at.rows <= LANES ? 1 : MAX_VECS);
  }
}

#else  // groups

#define TILE_ROWS (GROUP_Y * ROWS)
#define KEYS ((BLOCK_KEYS + GROUP_X - 1) / GROUP_X)    // of a work-item
#define COLUMNS ((D_KV + GROUP_X - 1) / GROUP_X)  // of a work-item
#define CHUNK 16                                  // of d_kv that is in local memory at a time
#define CHUNK_STRIDE (CHUNK + 1)                  // so that neighbours are in different banks

// Rows of a matrix, columns [column, column + n), into local memory; rows past the last repeat it.
DEVICE_FUNCTION void fetch(GLOBAL const float* from, long stride, int rows, int tile_rows, int n,
                           float scale, LOCAL_POINTER float* to) {
  for (int i = LOCAL_ID(1) * GROUP_X + LOCAL_ID(0); i < tile_rows * CHUNK;
       i += GROUP_X * GROUP_Y) {
    const int row = i / CHUNK < rows ? i / CHUNK : rows - 1;
    const int column = i % CHUNK;
    if (column < n) to[i / CHUNK * CHUNK_STRIDE + column] = from[row * stride + column] * scale;
  }
}

KERNEL attend_groups(ATTENTION_ARGUMENTS) {
  LOCAL float some_q[TILE_ROWS * CHUNK_STRIDE];
  LOCAL float some_k[BLOCK_KEYS * CHUNK_STRIDE];
  LOCAL float shares[TILE_ROWS * BLOCK_KEYS];
  LOCAL float highest_of[TILE_ROWS * GROUP_X];
  const int x = LOCAL_ID(0);  // keys and columns x, x + GROUP_X, ... are this work-item's,
  const int y_begin = LOCAL_ID(1) * ROWS;  // and rows [y_begin, y_begin + ROWS)
  GLOBAL const int* tile = tiles + 4 * GROUP_ID(0);
  const int row = tile[0];
  const int rows = tile[1];
  const int key_end = tile[3];
  const int head_column = GROUP_ID(1) * D_KV;
  q += q_offset + (row - first_row) * q_stride + head_column;
  k += k_offset + head_column;
  v += v_offset + head_column;
  y += y_offset + (row - first_row) * y_stride + head_column;
  bias += bias_offset + GROUP_ID(1) * bias_stride + bias_cols / 2;

  int position[ROWS];
  float highest[ROWS];
  float sum[ROWS];
  float context[ROWS][COLUMNS];
  for (int r = 0; r < ROWS; ++r) {
    position[r] = positions[row + (y_begin + r < rows ? y_begin + r : rows - 1)];
    highest[r] = MINUS_INFINITY;
    sum[r] = 0.0F;
  }
  for (int key = tile[2]; key < key_end; key += BLOCK_KEYS) {
    if (causal && positions[key] > positions[row + rows - 1]) break;
    const int n_keys = key_end - key < BLOCK_KEYS ? key_end - key : BLOCK_KEYS;
    float score[ROWS][KEYS];
    for (int r = 0; r < ROWS; ++r) {
      for (int i = 0; i < KEYS; ++i) score[r][i] = 0.0F;
    }
    for (int d = 0; d < D_KV; d += CHUNK) {
      const int n = D_KV - d < CHUNK ? D_KV - d : CHUNK;
      BARRIER();
      fetch(q + d, q_stride, rows, TILE_ROWS, n, scale, some_q);
      fetch(k + key * k_stride + d, k_stride, n_keys, BLOCK_KEYS, n, 1.0F, some_k);
      BARRIER();
      for (int c = 0; c < n; ++c) {
        for (int i = 0; i < KEYS; ++i) {
          const int j = x + i * GROUP_X < BLOCK_KEYS ? x + i * GROUP_X : BLOCK_KEYS - 1;
          const float number = some_k[j * CHUNK_STRIDE + c];
          for (int r = 0; r < ROWS; ++r) {
            score[r][i] = FUSED(number, some_q[(y_begin + r) * CHUNK_STRIDE + c], score[r][i]);
          }
        }
      }
    }
    for (int r = 0; r < ROWS; ++r) {
      float most = MINUS_INFINITY;
      for (int i = 0; i < KEYS; ++i) {
        const int j = x + i * GROUP_X;
        if (j < n_keys) {
          const int distance = positions[key + j] - position[r];
          if (bias_cols > 0) score[r][i] += bias[distance];
          if (causal && distance > 0) score[r][i] = MINUS_INFINITY;
          most = most < score[r][i] ? score[r][i] : most;
        }
      }
      highest_of[(y_begin + r) * GROUP_X + x] = most;
    }
    BARRIER();
    for (int r = 0; r < ROWS; ++r) {
      const float before = highest[r];
      for (int i = 0; i < GROUP_X; ++i) {
        const float other = highest_of[(y_begin + r) * GROUP_X + i];
        highest[r] = highest[r] < other ? other : highest[r];
      }
      const float factor = exp_below_limit(before - highest[r]);
      sum[r] *= factor;
      for (int c = 0; c < COLUMNS; ++c) {
        context[r][c] = key == tile[2] ? 0.0F : context[r][c] * factor;
      }
      for (int i = 0; i < KEYS; ++i) {
        const int j = x + i * GROUP_X;
        if (j < n_keys) {
          shares[(y_begin + r) * BLOCK_KEYS + j] = exp_below_limit(score[r][i] - highest[r]);
        }
      }
    }
    BARRIER();
    GLOBAL const float* values = v + key * v_stride;
    for (int j = 0; j < n_keys; ++j, values += v_stride) {
      float share[ROWS];
      for (int r = 0; r < ROWS; ++r) {
        share[r] = shares[(y_begin + r) * BLOCK_KEYS + j];
        sum[r] += share[r];
      }
      for (int c = 0; c < COLUMNS; ++c) {
        const int column = x + c * GROUP_X < D_KV ? x + c * GROUP_X : D_KV - 1;
        const float value = values[column];
        for (int r = 0; r < ROWS; ++r) context[r][c] = FUSED(value, share[r], context[r][c]);
      }
    }
  }
  for (int r = 0; r < ROWS; ++r) {
    const float factor = 1.0F / sum[r];
    for (int c = 0; c < COLUMNS; ++c) {
      const int column = x + c * GROUP_X;
      if (y_begin + r < rows && column < D_KV) {
        y[(y_begin + r) * y_stride + column] = FUSED(context[r][c], factor, 0.0F);
      }
    }
  }
}

#endif
