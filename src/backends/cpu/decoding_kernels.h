// What the kernels for decoding, compiled once per instruction set, are handed.
#ifndef QUINTET_BACKENDS_CPU_DECODING_KERNELS_H_
#define QUINTET_BACKENDS_CPU_DECODING_KERNELS_H_

#include <cstddef>
#include <cstdint>

#include "backends/cpu/isa.h"

namespace quintet {

// Keys that lie side by side in a page: the lanes of a vector, on all machines.
inline constexpr size_t kGroupKeys = 8;

// One query row's columns of a head. y may be q.
struct CachedQuery {
  const float* q;
  float* y;
  size_t n_keys;
};

// Queries of one head that share a table of pages.
struct CachedSpan {
  const CachedQuery* queries;
  size_t n_queries;       // up to CachedKernels::span_rows
  const int32_t* pages;   // of the table
  const float* head;      // of page 0: values [kPageTokens][d_kv], then keys, in groups
                          //   [kPageTokens / kGroupKeys][d_kv][kGroupKeys]
  ptrdiff_t page_stride;  // floats from page to page
  size_t d_kv;
  float scale;
  const float* bias;   // of the head; bias[key position - query position], or null
  ptrdiff_t bias_end;  // the first distance that the table does not have
};

struct CachedKernels {
  size_t span_rows;
  void (*span)(const CachedSpan& span);
};
const CachedKernels& cached_kernels(Isa isa);

struct LogitKernels {
  float (*max)(const float* x, size_t n);
  // The sum of exp(x[i] - max) in 16 lanes.
  float (*sum_of_exp)(const float* x, size_t n, float max);
  void (*subtract)(float max, float log_sum, size_t n, float* x);  // x - max - log_sum
  // The first index from `begin` on whose element is above the threshold; n: there is none.
  size_t (*find_above)(const float* x, size_t begin, size_t n, float threshold);
};
const LogitKernels& logit_kernels(Isa isa);

}  // namespace quintet

#endif  // QUINTET_BACKENDS_CPU_DECODING_KERNELS_H_
