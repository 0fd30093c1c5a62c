// Ops over the rows of a batch: look up, normalise, pool.
#ifndef QUINTET_OPS_ROWS_H_
#define QUINTET_OPS_ROWS_H_

#include <cstdint>
#include <span>

#include "backends/device.h"
#include "core/tensor.h"

namespace quintet::ops {

// Rows of table [vocab_size, d_model], as [ids.size(), d_model] float32. Throws Error(kRecord) on
// an id outside the table.
Tensor embedding(Device& device, std::span<const int32_t> ids, const Tensor& table);

// x * weight / sqrt(mean(x^2) + eps) by rows, into y, which may be x; weight: [1, cols].
void rms_norm(Device& device, const Tensor& x, const Tensor& weight, float eps, const Tensor& y);

// One row for each range [begin[s], end[s]) of x's rows: [begin.size(), cols].
Tensor pool(Device& device, const Tensor& x, std::span<const int32_t> begin,
            std::span<const int32_t> end, Pooling pooling, bool normalize);

}  // namespace quintet::ops

#endif  // QUINTET_OPS_ROWS_H_
