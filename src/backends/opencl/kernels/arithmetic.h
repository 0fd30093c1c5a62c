// exp, log, the activations, the widening of 16-bit floats and sums in 16 lanes, operation for
// operation as backends/cpu/math-inl.h and row_kernels.cpp do them, so that both give the same
// bits.
//
// Every function is there for single floats and, in OpenCL, for vectors of them: exp_of(x) takes a
// float, exp_of16(x) a float16. Their text is written once, for N (the end of the names), T
// (floats) and B (their bits); `c ? a : b` chooses per lane.

// Activation of backends/device.h.
#define ACTIVATION_NONE 0
#define ACTIVATION_RELU 1
#define ACTIVATION_GELU_TANH 2
#define ACTIVATION_GELU_ERF 3
#define ACTIVATION_SILU 4
#define ACTIVATION_TANH 5
#define ACTIVATION_GELU_QUICK 6

// One step of Horner's rule.
#define TERM(T, sum, x, c) sum = FUSED(sum, x, (T)(c))

// e^x for x <= 88.37; 0 below -87.3, exactly 1 for 0, NaN for NaN. x = n ln 2 + r.
#define DEFINE_EXP_BELOW_LIMIT(N, T, B, FLOATS, BITS)                    \
  DEVICE_FUNCTION T exp_below_limit##N(T x) {                            \
    const T shift = (T)(12582912.0F);                                    \
    const T shifted = FUSED(x, (T)(1.44269504F), shift);                 \
    const T n = shifted - shift;                                         \
    T r = FUSED(-n, (T)(0x1.62e4p-1F), x);                               \
    r = FUSED(-n, (T)(1.42860677e-6F), r);                               \
    T q = (T)(0x1.6a1a68p-10F);                                          \
    TERM(T, q, r, 0x1.123fc8p-7F);                                       \
    TERM(T, q, r, 0x1.555916p-5F);                                       \
    TERM(T, q, r, 0x1.55548ap-3F);                                       \
    TERM(T, q, r, 0x1.fffffcp-2F);                                       \
    const T p = (T)(1.0F) + FUSED(r * r, q, r);                          \
    const T two_to_n = FLOATS((BITS(shifted) << 23) + (B)(0x3F800000U)); \
    return x < (T)(-87.3F) ? (T)(0.0F) : p * two_to_n;                   \
  }

// The same, and infinity above 88.37.
#define DEFINE_EXP(N, T, B, FLOATS, BITS)                                      \
  DEVICE_FUNCTION T exp_of##N(T x) {                                           \
    return x > (T)(88.37F) ? FLOATS((B)(0x7F800000U)) : exp_below_limit##N(x); \
  }

// erfc(|x| / sqrt(2)).
#define DEFINE_ERFC(N, T, B, FLOATS, BITS)                                            \
  DEVICE_FUNCTION T erfc_of_scaled##N(T x) {                                          \
    const T one = (T)(1.0F);                                                          \
    const T two = (T)(2.0F);                                                          \
    const T half_of = (T)(0.5F);                                                      \
    const T size = fabs(x);                                                           \
    const T a = size < (T)(20.0F) ? size : (T)(20.0F);                                \
    const T t = a * (T)(0.707106781F);                                                \
    const T s = (t - two) / (t + two);                                                \
    T p = (T)(2.77510626e-05F);                                                       \
    TERM(T, p, s, -3.62024526e-04F);                                                  \
    TERM(T, p, s, -1.25306088e-03F);                                                  \
    TERM(T, p, s, 1.27121515e-03F);                                                   \
    TERM(T, p, s, 8.63755494e-03F);                                                   \
    TERM(T, p, s, -8.04401748e-03F);                                                  \
    TERM(T, p, s, -5.42048626e-02F);                                                  \
    TERM(T, p, s, 1.64053097e-01F);                                                   \
    TERM(T, p, s, -1.66031390e-01F);                                                  \
    TERM(T, p, s, -9.27638933e-02F);                                                  \
    TERM(T, p, s, 1.27697837F);                                                       \
    const T square = a * a;                                                           \
    const T rest = FUSED(a, a, -square);                                              \
    const T e = exp_below_limit##N(-(square * half_of)) * FUSED(-rest, half_of, one); \
    return (e * p) / FUSED(two, t, one);                                              \
  }

#define DEFINE_TANH(N, T, B, FLOATS, BITS)                                   \
  DEVICE_FUNCTION T tanh_of##N(T x) {                                        \
    const T one = (T)(1.0F);                                                 \
    const T two = (T)(2.0F);                                                 \
    const T a = fabs(x);                                                     \
    const T square = x * x;                                                  \
    T q = (T)(-0x1.75e1bap-8F);                                              \
    TERM(T, q, square, 0x1.522696p-6F);                                      \
    TERM(T, q, square, -0x1.b83c5ap-5F);                                     \
    TERM(T, q, square, 0x1.110726p-3F);                                      \
    TERM(T, q, square, -0x1.555532p-2F);                                     \
    const T near_zero = FUSED(x * square, q, x);                             \
    const T beyond = one - two / (exp_of##N(two * a) + one);                 \
    return a < (T)(0.625F) ? near_zero : (x < (T)(0.0F) ? -beyond : beyond); \
  }

#define DEFINE_ACTIVATE(N, T, B, FLOATS, BITS)                              \
  DEVICE_FUNCTION T activate##N(int activation, T x) {                      \
    const T one = (T)(1.0F);                                                \
    const T zero = (T)(0.0F);                                               \
    if (activation == ACTIVATION_RELU) return x < zero ? zero : x;          \
    if (activation == ACTIVATION_GELU_TANH) {                               \
      const T slope = FUSED(x * x, (T)(-0.0713548162F), (T)(-1.59576912F)); \
      return x / (one + exp_of##N(x * slope));                              \
    }                                                                       \
    if (activation == ACTIVATION_GELU_ERF) {                                \
      const T tail = erfc_of_scaled##N(x);                                  \
      const T twice_phi = x < zero ? tail : (T)(2.0F) - tail;               \
      return ((T)(0.5F) * x) * twice_phi;                                   \
    }                                                                       \
    if (activation == ACTIVATION_SILU) return x / (one + exp_of##N(-x));    \
    if (activation == ACTIVATION_TANH) return tanh_of##N(x);                \
    if (activation == ACTIVATION_GELU_QUICK) {                              \
      return x / (one + exp_of##N(x * (T)(-1.702F)));                       \
    }                                                                       \
    return x;                                                               \
  }

// The float of a bfloat16 or a float16, given as the low 16 bits of B. Of a float16 in integers and
// one exact subtraction: subnormal numbers count, whatever the device does with its own.
#define DEFINE_WIDEN(N, T, B, FLOATS, BITS)                                         \
  DEVICE_FUNCTION T widen_bfloat16##N(B bits) { return FLOATS(bits << 16); }        \
  DEVICE_FUNCTION T widen_float16##N(B bits) {                                      \
    const B size = (bits & (B)(0x7FFFU)) << 13;                                     \
    const B normal = size + (B)(112U << 23);                                        \
    const B small = BITS(FLOATS(size + (B)(113U << 23)) - FLOATS((B)(113U << 23))); \
    const B finite = size < (B)(1U << 23) ? small : normal;                         \
    const B all = size < (B)(31U << 23) ? finite : size | (B)(0x7F800000U);         \
    return FLOATS(all | ((bits & (B)(0x8000U)) << 16));                             \
  }

#define DEFINE_ARITHMETIC(N, T, B, FLOATS, BITS) \
  DEFINE_EXP_BELOW_LIMIT(N, T, B, FLOATS, BITS)  \
  DEFINE_EXP(N, T, B, FLOATS, BITS)              \
  DEFINE_ERFC(N, T, B, FLOATS, BITS)             \
  DEFINE_TANH(N, T, B, FLOATS, BITS)             \
  DEFINE_ACTIVATE(N, T, B, FLOATS, BITS)         \
  DEFINE_WIDEN(N, T, B, FLOATS, BITS)

DEFINE_ARITHMETIC(, float, bits32, FLOAT_OF_BITS, BITS_OF_FLOAT)

// log(x) within 1 ulp for 1 <= x; infinity for infinity, NaN for NaN. x = 2^n (1 + f), 1 + f
// between sqrt(1/2) and sqrt(2); log(1 + f) = f - f^2 / 2 + f^3 p(f), p with a relative error of
// 6e-9.
DEVICE_FUNCTION float log_of(float x) {
  const bits32 bits = BITS_OF_FLOAT(x);
  const bits32 exponent = (bits - 0x3F3504F3U) >> 23;
  const float n = (float)(int)exponent;
  const float f = FLOAT_OF_BITS(bits - (exponent << 23)) - 1.0F;
  const float square = f * f;
  float p = -0x1.38b582p-4F;
  TERM(float, p, f, 0x1.055b6cp-3F);
  TERM(float, p, f, -0x1.0d8542p-3F);
  TERM(float, p, f, 0x1.22da1cp-3F);
  TERM(float, p, f, -0x1.547244p-3F);
  TERM(float, p, f, 0x1.99a008p-3F);
  TERM(float, p, f, -0x1.000226p-2F);
  TERM(float, p, f, 0x1.555554p-2F);
  float rest = FUSED(f * square, p, n * 1.42860677e-6F);
  rest = FUSED(-0.5F, square, rest);
  const float log = FUSED(n, 0x1.62e4p-1F, f + rest);
  return x < FLOAT_OF_BITS(0x7F800000U) ? log : x;
}

// The sum over 16 lanes as a tree: lane i and lane i + 8, then i + 4, i + 2, i + 1.
DEVICE_FUNCTION float sum_of_lanes(LOCAL_POINTER const float* lanes) {
  float sums[8];
  for (int i = 0; i < 8; ++i) sums[i] = lanes[i] + lanes[i + 8];
  for (int i = 0; i < 4; ++i) sums[i] += sums[i + 4];
  return (sums[0] + sums[2]) + (sums[1] + sums[3]);
}

#if defined(__OPENCL_VERSION__)

DEFINE_ARITHMETIC(2, float2, uint2, as_float2, as_uint2)
DEFINE_ARITHMETIC(4, float4, uint4, as_float4, as_uint4)
DEFINE_ARITHMETIC(8, float8, uint8, as_float8, as_uint8)
DEFINE_ARITHMETIC(16, float16, uint16, as_float16, as_uint16)

DEVICE_FUNCTION float sum_of_lanes16(float16 lanes) {
  const float8 eight = lanes.lo + lanes.hi;
  const float4 four = eight.lo + eight.hi;
  const float2 two = four.lo + four.hi;
  return two.x + two.y;
}

#endif

// Sixteen lanes that go along a row together. With LANES_IN_VECTOR (OpenCL) they are a vector of
// one work-item, else sixteen work-items side by side: dimension 0 of their group, whose dimension
// 1, ROWS_PER_GROUP long, are rows. A kernel that sums has LANE_SCRATCH among its variables.
#if defined(LANES_IN_VECTOR)

typedef float16 lanes16;
#define LANE_SCRATCH
#define SUM_ACROSS(lanes) sum_of_lanes16(lanes)
#define MAX_ACROSS(lanes) max_of_lanes16(lanes)

DEVICE_FUNCTION float max_of_lanes16(float16 lanes) {
  const float8 eight = fmax(lanes.lo, lanes.hi);
  const float4 four = fmax(eight.lo, eight.hi);
  return fmax(fmax(four.x, four.y), fmax(four.z, four.w));
}
DEVICE_FUNCTION float16 exp_of_lanes(float16 x) { return exp_below_limit16(x); }
// Elements [i, i + 16) of n; `past` for those behind the last.
DEVICE_FUNCTION float16 load_lanes(GLOBAL const float* x, int i, int n, float past) {
  if (i + 16 <= n) return vload16(0, x + i);
  float rest[16];
  for (int lane = 0; lane < 16; ++lane) rest[lane] = i + lane < n ? x[i + lane] : past;
  return vload16(0, rest);
}
DEVICE_FUNCTION void store_lanes(float16 lanes, GLOBAL float* y, int i, int n) {
  if (i + 16 <= n) {
    vstore16(lanes, 0, y + i);
    return;
  }
  float rest[16];
  vstore16(lanes, 0, rest);
  for (int lane = 0; i + lane < n; ++lane) y[i + lane] = rest[lane];
}
DEVICE_FUNCTION uint16 load_bits16_lanes(GLOBAL const bits16* x, int i, int n) {
  if (i + 16 <= n) return convert_uint16(vload16(0, x + i));
  uint rest[16];
  for (int lane = 0; lane < 16; ++lane) rest[lane] = i + lane < n ? x[i + lane] : 0;
  return vload16(0, rest);
}
#define WIDEN_BFLOAT16(bits) widen_bfloat1616(bits)
#define WIDEN_FLOAT16(bits) widen_float1616(bits)

#elif defined(ROWS_PER_GROUP)

typedef float lanes16;
#define LANE_SCRATCH LOCAL float lane_scratch[ROWS_PER_GROUP][16]
#define SUM_ACROSS(lanes) sum_across(lanes, lane_scratch[LOCAL_ID(1)])
#define MAX_ACROSS(lanes) max_across(lanes, lane_scratch[LOCAL_ID(1)])

// For all work-items of a group at once; each gets the result.
DEVICE_FUNCTION float sum_across(float mine, LOCAL_POINTER float* lanes) {
  BARRIER();  // what was there has been read
  lanes[LOCAL_ID(0)] = mine;
  BARRIER();
  return sum_of_lanes(lanes);
}
DEVICE_FUNCTION float max_across(float mine, LOCAL_POINTER float* lanes) {
  BARRIER();
  lanes[LOCAL_ID(0)] = mine;
  BARRIER();
  float most = lanes[0];
  for (int lane = 1; lane < 16; ++lane) most = fmax(most, lanes[lane]);
  return most;
}
DEVICE_FUNCTION float exp_of_lanes(float x) { return exp_below_limit(x); }
DEVICE_FUNCTION float load_lanes(GLOBAL const float* x, int i, int n, float past) {
  return i + LOCAL_ID(0) < n ? x[i + LOCAL_ID(0)] : past;
}
DEVICE_FUNCTION void store_lanes(float mine, GLOBAL float* y, int i, int n) {
  if (i + LOCAL_ID(0) < n) y[i + LOCAL_ID(0)] = mine;
}
DEVICE_FUNCTION bits32 load_bits16_lanes(GLOBAL const bits16* x, int i, int n) {
  return i + LOCAL_ID(0) < n ? x[i + LOCAL_ID(0)] : 0;
}
#define WIDEN_BFLOAT16(bits) widen_bfloat16(bits)
#define WIDEN_FLOAT16(bits) widen_float16(bits)

#endif
