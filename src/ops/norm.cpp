#include "ops/norm.h"

#include "ops/rows.h"

namespace quintet::ops {

void norm(Device& device, const Tensor& x, const Tensor& weight, const Tensor& bias, float eps,
          const Tensor& y) {
  if (!bias) {
    rms_norm(device, x, weight, eps, y);
  } else {
    layer_norm(device, x, weight, bias, eps, y);
  }
}

}  // namespace quintet::ops
