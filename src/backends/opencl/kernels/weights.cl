// Weights in panels, and how they get there from a checkpoint's rows. A panel holds WIDTH columns
// of x * w^T (rows of w) for all k: [n_panels][d_in][WIDTH]. With a gate its first half holds
// columns of wi_0, its second the same columns of wi_1. bfloat16 panels hold pairs: the low half of a
// 32-bit word is of the first half of the panel, the high half of the second.
#ifndef WIDTH
#define WIDTH 64
#define STORED 0  // what panels hold: 0 float32, 1 bfloat16, 2 float16
#endif
#ifndef SOURCE
#define SOURCE STORED  // what the file holds: the same or, for float32 panels, any
#define STEPS 16       // of k that one work-item packs
#endif

// Where column `column`, step k lies, in elements.
DEVICE_FUNCTION long place_of(long column, long k, long d_in) {
  const long row = column / WIDTH * d_in + k;
  const long at = column % WIDTH;
#if STORED == 1
  return row * WIDTH + 2 * (at % (WIDTH / 2)) + at / (WIDTH / 2);
#else
  return row * WIDTH + at;
#endif
}

#if STORED == 0
typedef float Packed;
#else
typedef bits16 Packed;
#endif
#if SOURCE == 0
typedef float Filed;
#else
typedef bits16 Filed;
#endif

DEVICE_FUNCTION Packed packed_of(Filed value) {
#if SOURCE == STORED
  return value;
#elif SOURCE == 1
  return widen_bfloat16((bits32)value);
#else
  return widen_float16((bits32)value);
#endif
}

DEVICE_FUNCTION float float_of(Packed value) {
#if STORED == 0
  return value;
#elif STORED == 1
  return widen_bfloat16((bits32)value);
#else
  return widen_float16((bits32)value);
#endif
}

// A part of the file, elements (i, k) for i < n_columns, first_k <= k < end_k, at
// from[offset + i * column_step + (k - first_k) * k_step], becomes columns first_column + i of the matrix;
// those of a gated matrix alternate between halves of panels, `group` columns at a time, of which
// the part holds the `side`-th. What lies behind, up to n_places, becomes zero.
KERNEL pack_part(GLOBAL const Filed* from, long offset, long column_step, long k_step, GLOBAL Packed* to,
                 long first_column, long n_columns, long n_places, int group, int side,
                 long first_k, long end_k, long d_in) {
  const long i = GLOBAL_ID(0);
  if (i >= n_places) return;
  const long column = first_column + i;
  const long place = group == 0 ? column : column / group * (2 * group) + side * group + column % group;
  const long begin = first_k + GLOBAL_ID(1) * STEPS;
  const long end = begin + STEPS < end_k ? begin + STEPS : end_k;
  for (long k = begin; k < end; ++k) {
    to[place_of(place, k, d_in)] =
        i < n_columns ? packed_of(from[offset + i * column_step + (k - first_k) * k_step]) : (Packed)0;
  }
}

// y[i] = row ids[i] of the matrix
KERNEL weight_rows(GLOBAL const int* ids, GLOBAL const Packed* w, long d_in, GLOBAL float* y,
                   long y_offset, long y_stride) {
  const long k = GLOBAL_ID(0);
  const long i = GLOBAL_ID(1);
  if (k >= d_in) return;
  y[y_offset + i * y_stride + k] = float_of(w[place_of(ids[i], k, d_in)]);
}
