#include "ops/logits.h"

#include <string_view>

#include "core/error.h"
#include "ops/checks.h"

namespace quintet::ops {
namespace {

void check_logits(std::string_view op, const Device& device, const Tensor& logits) {
  check_shape(op, "the logits", logits, logits.rows(), logits.cols());
  check_placement(op, "the logits", device, logits);
}

}  // namespace

void log_softmax(Device& device, const Tensor& logits) {
  check_logits("log_softmax", device, logits);
  if (!logits.empty()) device.log_softmax(logits);
}

void edit(Device& device, std::span<const LogitEdit> edits, const Tensor& logits) {
  check_logits("edit", device, logits);
  for (const LogitEdit& change : edits) {
    const bool whole = change.kind == LogitEdit::Kind::kFillRow;
    if (change.row < 0 || change.row >= logits.rows() ||
        (!whole && (change.token < 0 || change.token >= logits.cols()))) {
      fail(ErrorKind::kUsage, "edit: row {}, token {} is outside the logits, [{}, {}]", change.row,
           change.token, logits.rows(), logits.cols());
    }
  }
  if (!edits.empty() && !logits.empty()) device.edit(edits, logits);
}

Best top_k(Device& device, const Tensor& logits, int64_t k) {
  check_logits("top_k", device, logits);
  if (k < 1 || k > logits.cols()) {
    fail(ErrorKind::kUsage, "top_k: {} of {} columns, expected 1 .. {}", k, logits.cols(),
         logits.cols());
  }
  const auto n = static_cast<size_t>(logits.rows() * k);
  Best best{.ids = std::vector<int32_t>(n), .values = std::vector<float>(n)};
  if (n > 0) device.top_k(logits, k, best.ids, best.values);
  return best;
}

std::vector<float> pick(Device& device, const Tensor& logits, std::span<const int32_t> rows,
                        std::span<const int32_t> columns) {
  check_logits("pick", device, logits);
  if (rows.size() != columns.size()) {
    fail(ErrorKind::kUsage, "pick: {} rows and {} columns", rows.size(), columns.size());
  }
  check_indices("pick", "row", rows, logits.rows());
  check_indices("pick", "column", columns, logits.cols());
  std::vector<float> values(rows.size());
  if (!values.empty()) device.pick(logits, rows, columns, values);
  return values;
}

}  // namespace quintet::ops
