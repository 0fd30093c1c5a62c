// Caches of keys and values in pages, and attention of single rows over them: the arithmetic of
// attention.cl, key block by key block, for one row at a time. In attend_cached_lanes, for devices
// with wide vectors, a work-item is a row and a head; in attend_cached_groups a work-group is.
//
// A page holds for each head its values [PAGE][D_KV], then its keys [D_KV][PAGE]: neighbouring
// columns of a value and neighbouring keys lie side by side. What a vector reads past the last
// column of a value is thus never past the end of a cache.
//
// Defined: D_KV, HEADS, PAGE; LANES or GROUP, each only for the kernels named so.

#define BLOCK_PAGES 5  // attention.cl's BLOCK_KEYS
#define BLOCK_KEYS (BLOCK_PAGES * PAGE)
#define MINUS_INFINITY (-INFINITY)
#define HEAD_FLOATS (2 * PAGE * D_KV)
#define PAGE_FLOATS ((long)HEADS * HEAD_FLOATS)

// copies: (from, to) page of each, done in their order; a work-item is one place of a page.
KERNEL copy_pages(GLOBAL float* cache, GLOBAL const int* copies, int n_copies) {
  const long at = GLOBAL_ID(0);
  if (at >= PAGE_FLOATS) return;
  for (int i = 0; i < n_copies; ++i) {
    cache[copies[2 * i + 1] * PAGE_FLOATS + at] = cache[copies[2 * i] * PAGE_FLOATS + at];
  }
}

// Dimension 0: columns of a row, dimension 1: rows. A slot is a page's number times PAGE plus the
// place in it; -1: nowhere.
KERNEL write_rows(GLOBAL float* cache, MATRIX(k), MATRIX(v), GLOBAL const int* slots) {
  const long column = GLOBAL_ID(0);
  const long row = GLOBAL_ID(1);
  const int slot = slots[row];
  if (column >= HEADS * D_KV || slot < 0) return;
  const int place = slot % PAGE;
  const int d = (int)(column % D_KV);
  GLOBAL float* head = cache + slot / PAGE * PAGE_FLOATS + column / D_KV * HEAD_FLOATS;
  head[place * D_KV + d] = v[v_offset + row * v_stride + column];
  head[(D_KV + d) * PAGE + place] = k[k_offset + row * k_stride + column];
}

// rows: of each the first page of its table in `pages`, and its number of keys. Dimension 0 of the
// grid: rows, dimension 1: heads. y may be q.
#define CACHED_ARGUMENTS                                                                      \
  MATRIX(q), GLOBAL const float *cache, GLOBAL const int *pages, GLOBAL const int *rows,      \
      MATRIX(bias), int bias_cols /* 0: no bias */, float scale, MATRIX(y)

#if defined(LANES)

#define JOIN(a, b) a##b
#define WITH_LANES(a, lanes) JOIN(a, lanes)
#define FLOATS WITH_LANES(float, LANES)
#define EXP_BELOW_LIMIT WITH_LANES(exp_below_limit, LANES)
#define LOAD WITH_LANES(vload, LANES)
#define STORE WITH_LANES(vstore, LANES)
#define INLINE DEVICE_FUNCTION __attribute__((always_inline))

#define VECS ((D_KV + LANES - 1) / LANES)  // of a value's columns
#define PAGE_VECS (PAGE / LANES)
#define MAX_VECS 8  // sums at a time: enough to hide the latency of a multiply-add

// scores[0, PAGE) of a page's keys: [D_KV][PAGE]
INLINE void score_page(GLOBAL const float* keys, LOCAL const float* q, LOCAL float* scores) {
  FLOATS sums[PAGE_VECS];
#pragma unroll
  for (int i = 0; i < PAGE_VECS; ++i) sums[i] = (FLOATS)(0.0F);
  for (int d = 0; d < D_KV; ++d) {
    const FLOATS number = (FLOATS)(q[d]);
#pragma unroll
    for (int i = 0; i < PAGE_VECS; ++i) sums[i] = FUSED(LOAD(i, keys + d * PAGE), number, sums[i]);
  }
#pragma unroll
  for (int i = 0; i < PAGE_VECS; ++i) STORE(sums[i], i, scores);
}

// n vectors of columns, n being a constant: context = context * factor + shares * values.
INLINE void add_values(GLOBAL const float* cache, long head, GLOBAL const int* pages, int n_keys,
                       LOCAL const float* shares, float factor, bool first, int vec, const int n,
                       LOCAL FLOATS* context) {
  FLOATS sums[MAX_VECS];
#pragma unroll
  for (int i = 0; i < n; ++i) {
    sums[i] = first ? (FLOATS)(0.0F) : context[vec + i] * (FLOATS)(factor);
  }
  for (int page = 0; page * PAGE < n_keys; ++page) {
    GLOBAL const float* value = cache + pages[page] * PAGE_FLOATS + head + vec * LANES;
    const int end = min(PAGE, n_keys - page * PAGE);
    for (int j = 0; j < end; ++j, value += D_KV) {
      const FLOATS share = (FLOATS)(shares[page * PAGE + j]);
#pragma unroll
      for (int i = 0; i < n; ++i) sums[i] = FUSED(LOAD(i, value), share, sums[i]);
    }
  }
#pragma unroll
  for (int i = 0; i < n; ++i) context[vec + i] = sums[i];
}

KERNEL attend_cached_lanes(CACHED_ARGUMENTS) {
  LOCAL float scaled_q[D_KV];
  LOCAL FLOATS context[VECS];
  LOCAL float scores[BLOCK_KEYS];
  const int row = GROUP_ID(0);
  const long head = GROUP_ID(1) * (long)HEAD_FLOATS;
  const int column = GROUP_ID(1) * D_KV;
  const int n_keys = rows[2 * row + 1];
  pages += rows[2 * row];
  q += q_offset + row * q_stride + column;
  y += y_offset + row * y_stride + column;
  bias += bias_offset + GROUP_ID(1) * bias_stride + bias_cols / 2 - (n_keys - 1);
  for (int d = 0; d < D_KV; ++d) scaled_q[d] = q[d] * scale;
  float highest = MINUS_INFINITY;
  float sum = 0.0F;
  for (int key = 0; key < n_keys; key += BLOCK_KEYS, pages += BLOCK_PAGES) {
    const int n = min(BLOCK_KEYS, n_keys - key);
    const int n_pages = (n + PAGE - 1) / PAGE;
    for (int page = 0; page < n_pages; ++page) {
      score_page(cache + pages[page] * PAGE_FLOATS + head + PAGE * D_KV, scaled_q,
                 scores + page * PAGE);
    }
    if (bias_cols > 0) {
      for (int j = 0; j < n; ++j) scores[j] += bias[key + j];
    }
    for (int j = n; j < n_pages * PAGE; ++j) scores[j] = MINUS_INFINITY;
    FLOATS most = (FLOATS)(highest);
    for (int i = 0; i < n_pages * PAGE_VECS; ++i) {
      const FLOATS score = LOAD(i, scores);
      most = most < score ? score : most;
    }
    const float before = highest;
    for (int i = 0; i < LANES; ++i) {
      const float other = ((const float*)&most)[i];
      highest = highest < other ? other : highest;
    }
    const float factor = exp_below_limit(before - highest);
    for (int i = 0; i < n_pages * PAGE_VECS; ++i) {
      STORE(EXP_BELOW_LIMIT(LOAD(i, scores) - (FLOATS)(highest)), i, scores);
    }
    sum *= factor;
    for (int j = 0; j < n; ++j) sum += scores[j];
    for (int vec = 0; vec + MAX_VECS <= VECS; vec += MAX_VECS) {
      add_values(cache, head, pages, n, scores, factor, key == 0, vec, MAX_VECS, context);
    }
    if (VECS % MAX_VECS != 0) {
      add_values(cache, head, pages, n, scores, factor, key == 0, VECS / MAX_VECS * MAX_VECS,
                 VECS % MAX_VECS, context);
    }
  }
  const float factor = 1.0F / sum;
  LOCAL const float* single = (LOCAL const float*)context;
  for (int d = 0; d < D_KV; ++d) y[d] = FUSED(single[d], factor, 0.0F);
}

#elif defined(GROUP)

#define COLUMNS ((D_KV + GROUP - 1) / GROUP)  // of a work-item: x, x + GROUP, ...

KERNEL attend_cached_groups(CACHED_ARGUMENTS) {
  LOCAL float scaled_q[D_KV];
  LOCAL float scores[BLOCK_KEYS];
  LOCAL float shares[BLOCK_KEYS];
  const int x = LOCAL_ID(0);
  const int row = GROUP_ID(0);
  const long head = GROUP_ID(1) * (long)HEAD_FLOATS;
  const int head_column = GROUP_ID(1) * D_KV;
  const int n_keys = rows[2 * row + 1];
  pages += rows[2 * row];
  q += q_offset + row * q_stride + head_column;
  y += y_offset + row * y_stride + head_column;
  bias += bias_offset + GROUP_ID(1) * bias_stride + bias_cols / 2 - (n_keys - 1);
  for (int d = x; d < D_KV; d += GROUP) scaled_q[d] = q[d] * scale;
  BARRIER();
  float highest = MINUS_INFINITY;
  float sum = 0.0F;
  float context[COLUMNS];
  for (int key = 0; key < n_keys; key += BLOCK_KEYS, pages += BLOCK_PAGES) {
    const int n = n_keys - key < BLOCK_KEYS ? n_keys - key : BLOCK_KEYS;
    for (int j = x; j < n; j += GROUP) {
      GLOBAL const float* from =
          cache + pages[j / PAGE] * PAGE_FLOATS + head + PAGE * D_KV + j % PAGE;
      float score = 0.0F;
      for (int d = 0; d < D_KV; ++d) score = FUSED(from[d * PAGE], scaled_q[d], score);
      scores[j] = bias_cols > 0 ? score + bias[key + j] : score;
    }
    BARRIER();
    const float before = highest;
    for (int j = 0; j < n; ++j) highest = highest < scores[j] ? scores[j] : highest;
    const float factor = exp_below_limit(before - highest);
    for (int j = x; j < n; j += GROUP) shares[j] = exp_below_limit(scores[j] - highest);
    BARRIER();
    sum *= factor;
    for (int c = 0; c < COLUMNS; ++c) context[c] = key == 0 ? 0.0F : context[c] * factor;
    for (int j = 0; j < n; ++j) {
      const float share = shares[j];
      GLOBAL const float* value = cache + pages[j / PAGE] * PAGE_FLOATS + head + j % PAGE * D_KV;
      sum += share;
      for (int c = 0; c < COLUMNS; ++c) {
        const int column = x + c * GROUP < D_KV ? x + c * GROUP : D_KV - 1;
        context[c] = FUSED(value[column], share, context[c]);
      }
    }
  }
  const float factor = 1.0F / sum;
  for (int c = 0; c < COLUMNS; ++c) {
    if (x + c * GROUP < D_KV) y[x + c * GROUP] = FUSED(context[c], factor, 0.0F);
  }
}

#endif
