#include "models/relative_bias.h"

#include <algorithm>
#include <cmath>

namespace quintet {
namespace {

// Tables grow in steps of this many distances, so that batches of rising length seldom rebuild.
constexpr int64_t kStep = 64;

}  // namespace

int64_t relative_bucket(int64_t distance, const RelativeBuckets& buckets) {
  int64_t count = buckets.count;
  int64_t bucket = 0;
  if (buckets.bidirectional) {
    count /= 2;
    if (distance > 0) bucket = count;
    distance = std::abs(distance);
  } else {
    distance = std::max<int64_t>(-distance, 0);
  }
  const int64_t exact = count / 2;
  if (distance < exact) return bucket + distance;
  // In float32 with these operations in this order: the borders between buckets depend on it.
  const float ratio = static_cast<float>(distance) / static_cast<float>(exact);
  const auto span = static_cast<float>(
      std::log(static_cast<double>(buckets.max_distance) / static_cast<double>(exact)));
  const float wide = std::log(ratio) / span * static_cast<float>(count - exact);
  return bucket + std::min(exact + static_cast<int64_t>(wide), count - 1);
}

RelativeBias::RelativeBias(const HostView& learned, const RelativeBuckets& buckets)
    : n_heads_(learned.cols()),
      buckets_(buckets),
      learned_(static_cast<size_t>(learned.rows() * learned.cols())) {
  widen(learned.data, learned.dtype, learned_.size(), learned_.data());
}

void RelativeBias::fit(Device& device, int64_t max_len) {
  if (table_ && table_.cols() >= 2 * max_len - 1) return;
  const int64_t m = (max_len + kStep - 1) / kStep * kStep;
  const int64_t width = 2 * m - 1;
  std::vector<float> values(static_cast<size_t>(n_heads_ * width));
  for (int64_t i = 0; i < width; ++i) {
    const int64_t bucket = relative_bucket(i - (m - 1), buckets_);
    for (int64_t head = 0; head < n_heads_; ++head) {
      values[static_cast<size_t>(head * width + i)] =
          learned_[static_cast<size_t>(bucket * n_heads_ + head)];
    }
  }
  if (table_) {
    table_ = Tensor();
    device.empty_cache();
  }
  table_ = device.allocate(n_heads_, width);
  device.upload(values.data(), table_);
}

}  // namespace quintet
