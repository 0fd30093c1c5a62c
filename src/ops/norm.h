// The norm before a part of a block: T5's, by root mean square, or a layer norm, which has a bias.
#ifndef QUINTET_OPS_NORM_H_
#define QUINTET_OPS_NORM_H_

#include "backends/device.h"
#include "core/tensor.h"

namespace quintet::ops {

// bias empty: rms_norm, else layer_norm; weight, bias: [1, cols]. y may be x.
void norm(Device& device, const Tensor& x, const Tensor& weight, const Tensor& bias, float eps,
          const Tensor& y);

}  // namespace quintet::ops

#endif  // QUINTET_OPS_NORM_H_
