// From a checkpoint's tensors to what a device works with. The pages of the file are given back on
// the way, so that at most a few MiB of it are resident at a time.
#ifndef QUINTET_OPS_WEIGHTS_H_
#define QUINTET_OPS_WEIGHTS_H_

#include <memory>
#include <span>

#include "backends/device.h"
#include "core/host_view.h"
#include "core/tensor.h"

namespace quintet::ops {

// The rows of `parts` (or columns, where they lie transposed) one below the other, [sum of them,
// d_in]; all of one dtype; gated: exactly two of one shape. Throws Error(kFile).
std::unique_ptr<Weight> pack(Device& device, std::span<const HostView> parts, PackOptions options);

// A matrix whose rows are looked up, [rows, cols] in `dtype`.
Tensor upload_table(Device& device, const HostView& view, DType dtype);

// A vector as [1, n] float32: norms, biases.
Tensor upload_vector(Device& device, const HostView& view);

}  // namespace quintet::ops

#endif  // QUINTET_OPS_WEIGHTS_H_
