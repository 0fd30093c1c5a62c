// What a run takes of main memory besides weights and activations: results on their way to the
// file, the writer, threads. Measured on the tiny example with glibc's heap, not counted.
#ifndef QUINTET_PLACEMENT_HOST_BYTES_H_
#define QUINTET_PLACEMENT_HOST_BYTES_H_

#include <cstdint>

namespace quintet {

struct HostLoad {
  int64_t d_model = 0;
  int64_t batch_rows = 0;  // result rows of a usual micro-batch: tokens, or sequences where pooled
  int64_t longest_rows = 0;      // result rows of the longest record; 1 where pooled
  int64_t longest = 0;           // tokens of the longest record
  int64_t n_records = 0;         // 0: many
  int64_t bytes_per_number = 4;  // in the output
  bool hdf5 = false;             // the output's format
  int64_t n_stages = 1;
  int64_t n_threads = 1;  // that compute, of all devices together
};

// Beyond what the process holds before it loads the weights.
int64_t host_bytes(const HostLoad& load);

}  // namespace quintet

#endif  // QUINTET_PLACEMENT_HOST_BYTES_H_
