#include "ops/rows.h"

#include "core/error.h"
#include "ops/checks.h"

namespace quintet::ops {

Tensor embedding(Device& device, std::span<const int32_t> ids, const Tensor& table) {
  check_placement("embedding", "the table", device, table);
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= table.rows()) {
      fail(ErrorKind::kRecord, "token id {} of token {} is outside the vocabulary, 0 .. {}", ids[i],
           i, table.rows() - 1);
    }
  }
  Tensor y = device.allocate(static_cast<int64_t>(ids.size()), table.cols());
  if (!y.empty()) device.embedding(ids, table, y);
  return y;
}

void rms_norm(Device& device, const Tensor& x, const Tensor& weight, float eps, const Tensor& y) {
  check_shape("rms_norm", "weight", weight, 1, x.cols());
  check_shape("rms_norm", "y", y, x.rows(), x.cols());
  check_placement("rms_norm", "x", device, x);
  check_placement("rms_norm", "weight", device, weight);
  check_placement("rms_norm", "y", device, y);
  if (!x.empty()) device.rms_norm(x, weight, eps, y);
}

Tensor pool(Device& device, const Tensor& x, std::span<const int32_t> begin,
            std::span<const int32_t> end, Pooling pooling, bool normalize) {
  check_placement("pool", "x", device, x);
  if (begin.size() != end.size()) {
    fail(ErrorKind::kUsage, "pool: {} starts and {} ends of ranges", begin.size(), end.size());
  }
  for (size_t s = 0; s < begin.size(); ++s) {
    if (begin[s] < 0 || begin[s] > end[s] || end[s] > x.rows()) {
      fail(ErrorKind::kUsage, "pool: range {} is rows {} .. {} of {}", s, begin[s], end[s],
           x.rows());
    }
  }
  Tensor y = device.allocate(static_cast<int64_t>(begin.size()), x.cols());
  if (!y.empty()) device.pool(x, begin, end, pooling, normalize, y);
  return y;
}

}  // namespace quintet::ops
