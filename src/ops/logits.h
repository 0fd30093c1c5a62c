// Choosing tokens where the logits are: only what was chosen leaves the device. Logits are
// [n, vocab_size] float32.
#ifndef QUINTET_OPS_LOGITS_H_
#define QUINTET_OPS_LOGITS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "backends/device.h"
#include "core/logit_edit.h"
#include "core/tensor.h"

namespace quintet::ops {

// Logits become log-probabilities, row by row, in place.
void log_softmax(Device& device, const Tensor& logits);

// Done in their order.
void edit(Device& device, std::span<const LogitEdit> edits, const Tensor& logits);

struct Best {
  std::vector<int32_t> ids;   // [n * k], of each row largest first, of equals the lower id first
  std::vector<float> values;  // [n * k]
};
Best top_k(Device& device, const Tensor& logits, int64_t k);  // 1 <= k <= vocab_size

// [rows.size()], element i being logits[rows[i]][columns[i]].
std::vector<float> pick(Device& device, const Tensor& logits, std::span<const int32_t> rows,
                        std::span<const int32_t> columns);

}  // namespace quintet::ops

#endif  // QUINTET_OPS_LOGITS_H_
