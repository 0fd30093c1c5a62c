// What every op checks before a device sees its arguments, so that no backend has to.
#ifndef QUINTET_OPS_CHECKS_H_
#define QUINTET_OPS_CHECKS_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "backends/device.h"
#include "core/micro_batch.h"
#include "core/tensor.h"

namespace quintet::ops {

// Each throws Error(kUsage) that begins with `op`, e.g. "rms_norm: weight is [1, 4] float32, ...".
void check_shape(std::string_view op, std::string_view what, const Tensor& tensor, int64_t rows,
                 int64_t cols, DType dtype = DType::kFloat32);
void check_placement(std::string_view op, std::string_view what, const Device& device,
                     const Tensor& tensor);
void check_placement(std::string_view op, std::string_view what, const Device& device,
                     const Weight& weight);
void check_placement(std::string_view op, std::string_view what, const Device& device,
                     const KvCache& cache);
void check_weight(std::string_view op, std::string_view what, const Device& device,
                  const Weight& weight, int64_t d_out, int64_t d_in);

// Each of `indices` is in [0, end): "gather: row 7 of number 2 is outside 0 .. 4".
void check_indices(std::string_view op, std::string_view what, std::span<const int32_t> indices,
                   int64_t end);

// cu_seqlens rises from 0 to n_tokens; positions rise within each sequence and stay below max_len.
void check_batch(std::string_view op, const MicroBatch& batch);

}  // namespace quintet::ops

#endif  // QUINTET_OPS_CHECKS_H_
