// How fast a device computes, as measured on it: backends measure, placement lays out by it.
#ifndef QUINTET_CORE_DEVICE_SPEED_H_
#define QUINTET_CORE_DEVICE_SPEED_H_

#include "core/dtype.h"

namespace quintet {

struct DeviceSpeed {
  double float32_flops = 0;   // matrix products per second, weights kept in that dtype;
  double bfloat16_flops = 0;  //   a multiply-add counts two
  double float16_flops = 0;
  double attention_flops = 0;   // scores and weighted sums of attention, per second
  double bytes_per_second = 0;  // of streaming weights through a product of few rows

  double product_flops(DType dtype) const {
    if (dtype == DType::kBFloat16) return bfloat16_flops;
    return dtype == DType::kFloat16 ? float16_flops : float32_flops;
  }
};

}  // namespace quintet

#endif  // QUINTET_CORE_DEVICE_SPEED_H_
