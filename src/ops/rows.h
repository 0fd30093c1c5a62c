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

// y[i] += table[ids[i]], y: [ids.size(), d_model]: learned positions. Throws as embedding() does.
void embedding_add(Device& device, std::span<const int32_t> ids, const Tensor& table,
                   const Tensor& y);

// Rows of a packed matrix without a gate, [ids.size(), d_in]: a head that is also the embedding.
// Throws as embedding() does.
Tensor weight_rows(Device& device, std::span<const int32_t> ids, const Weight& weight);

// Rows of float32 activations, [rows.size(), cols].
Tensor gather(Device& device, const Tensor& x, std::span<const int32_t> rows);

// x * weight / sqrt(mean(x^2) + eps) by rows, into y, which may be x; weight: [1, cols].
void rms_norm(Device& device, const Tensor& x, const Tensor& weight, float eps, const Tensor& y);

// weight * (x - mean(x)) / sqrt(variance(x) + eps) + bias by rows, into y, which may be x; weight,
// bias: [1, cols].
void layer_norm(Device& device, const Tensor& x, const Tensor& weight, const Tensor& bias,
                float eps, const Tensor& y);

// One row for each range [begin[s], end[s]) of x's rows: [begin.size(), cols].
Tensor pool(Device& device, const Tensor& x, std::span<const int32_t> begin,
            std::span<const int32_t> end, Pooling pooling, bool normalize);

}  // namespace quintet::ops

#endif  // QUINTET_OPS_ROWS_H_
