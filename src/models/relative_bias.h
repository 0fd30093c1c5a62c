// T5's relative position bias: a learned value per head and bucket of distance, laid out per
// distance for the attention op. Never a tensor of [length, length].
#ifndef QUINTET_MODELS_RELATIVE_BIAS_H_
#define QUINTET_MODELS_RELATIVE_BIAS_H_

#include <cstdint>
#include <vector>

#include "backends/device.h"
#include "core/host_view.h"
#include "core/tensor.h"

namespace quintet {

struct RelativeBuckets {
  int64_t count = 32;
  int64_t max_distance = 128;
  bool bidirectional = true;  // encoder; a decoder looks back only
};

// Bucket of `distance` = key position - query position, rounded as the original's float32 rounds:
// small distances have a bucket each, larger ones share buckets that widen logarithmically, all
// from max_distance on share the last.
int64_t relative_bucket(int64_t distance, const RelativeBuckets& buckets);

class RelativeBias {
 public:
  // learned: the checkpoint's relative_attention_bias, [buckets.count, n_heads].
  RelativeBias(const HostView& learned, const RelativeBuckets& buckets);

  // [n_heads, 2 * m - 1] on the device, with m at least the largest max_len that fit() was given.
  const Tensor& table() const { return table_; }
  void fit(Device& device, int64_t max_len);  // builds the table anew when max_len outgrows it

  // Bytes of a table for max_len on the device: per_len * max_len, the rounding up of m left out.
  static int64_t bytes_per_len(int64_t n_heads) {
    return 2 * n_heads * static_cast<int64_t>(sizeof(float));
  }

 private:
  int64_t n_heads_;
  RelativeBuckets buckets_;
  std::vector<float> learned_;  // [buckets, n_heads]
  Tensor table_;
};

}  // namespace quintet

#endif  // QUINTET_MODELS_RELATIVE_BIAS_H_
