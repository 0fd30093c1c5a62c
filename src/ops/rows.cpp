#include "ops/rows.h"

#include "core/error.h"
#include "ops/checks.h"

namespace quintet::ops {
namespace {

void check_ids(std::span<const int32_t> ids, int64_t vocab_size) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= vocab_size) {
      fail(ErrorKind::kRecord, "token id {} of token {} is outside the vocabulary, 0 .. {}", ids[i],
           i, vocab_size - 1);
    }
  }
}

}  // namespace

Tensor embedding(Device& device, std::span<const int32_t> ids, const Tensor& table) {
  check_placement("embedding", "the table", device, table);
  check_ids(ids, table.rows());
  Tensor y = device.allocate(static_cast<int64_t>(ids.size()), table.cols());
  if (!y.empty()) device.embedding(ids, table, y);
  return y;
}

void embedding_add(Device& device, std::span<const int32_t> ids, const Tensor& table,
                   const Tensor& y) {
  check_placement("embedding_add", "the table", device, table);
  check_placement("embedding_add", "y", device, y);
  check_shape("embedding_add", "y", y, static_cast<int64_t>(ids.size()), table.cols());
  check_ids(ids, table.rows());
  if (!y.empty()) device.embedding(ids, table, y, /*accumulate=*/true);
}

Tensor weight_rows(Device& device, std::span<const int32_t> ids, const Weight& weight) {
  check_placement("weight_rows", "the weight", device, weight);
  if (weight.gated()) {
    fail(ErrorKind::kUsage, "weight_rows: the weight has a gate, expected one without");
  }
  check_ids(ids, weight.d_out());
  Tensor y = device.allocate(static_cast<int64_t>(ids.size()), weight.d_in());
  if (!y.empty()) device.weight_rows(ids, weight, y);
  return y;
}

Tensor gather(Device& device, const Tensor& x, std::span<const int32_t> rows) {
  check_shape("gather", "x", x, x.rows(), x.cols());
  check_placement("gather", "x", device, x);
  check_indices("gather", "row", rows, x.rows());
  Tensor y = device.allocate(static_cast<int64_t>(rows.size()), x.cols());
  if (!y.empty()) device.embedding(rows, x, y);
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

void layer_norm(Device& device, const Tensor& x, const Tensor& weight, const Tensor& bias,
                float eps, const Tensor& y) {
  check_shape("layer_norm", "weight", weight, 1, x.cols());
  check_shape("layer_norm", "bias", bias, 1, x.cols());
  check_shape("layer_norm", "y", y, x.rows(), x.cols());
  check_placement("layer_norm", "x", device, x);
  check_placement("layer_norm", "weight", device, weight);
  check_placement("layer_norm", "bias", device, bias);
  check_placement("layer_norm", "y", device, y);
  if (!x.empty()) device.layer_norm(x, weight, bias, eps, y);
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
