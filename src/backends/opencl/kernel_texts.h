// The texts of kernels/, compiled into the module.
#ifndef QUINTET_BACKENDS_OPENCL_KERNEL_TEXTS_H_
#define QUINTET_BACKENDS_OPENCL_KERNEL_TEXTS_H_

#include <string_view>
#include <vector>

namespace quintet::opencl {

struct KernelText {
  std::string_view name;  // "linear.cl", "dialect.h"
  std::string_view text;
};

// The headers first, in the order in which each .cl is put behind them.
const std::vector<KernelText>& kernel_texts();

}  // namespace quintet::opencl

#endif  // QUINTET_BACKENDS_OPENCL_KERNEL_TEXTS_H_
