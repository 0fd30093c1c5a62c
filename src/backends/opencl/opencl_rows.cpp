#include "backends/opencl/opencl_device.h"
#include "backends/opencl/queue_session.h"
#include "core/error.h"

namespace quintet::opencl {

void OpenclDevice::embedding(std::span<const int32_t> /*ids*/, const Tensor& /*table*/,
                             const Tensor& /*y*/, bool /*accumulate*/) {
  fail(ErrorKind::kDevice, "embedding: not there yet");
}
void OpenclDevice::rms_norm(const Tensor& /*x*/, const Tensor& /*weight*/, float /*eps*/,
                            const Tensor& /*y*/) {
  fail(ErrorKind::kDevice, "rms_norm: not there yet");
}
void OpenclDevice::layer_norm(const Tensor& /*x*/, const Tensor& /*weight*/, const Tensor& /*bias*/,
                              float /*eps*/, const Tensor& /*y*/) {
  fail(ErrorKind::kDevice, "layer_norm: not there yet");
}
void OpenclDevice::pool(const Tensor& /*x*/, std::span<const int32_t> /*begin*/,
                        std::span<const int32_t> /*end*/, Pooling /*pooling*/, bool /*normalize*/,
                        const Tensor& /*y*/) {
  fail(ErrorKind::kDevice, "pool: not there yet");
}

}  // namespace quintet::opencl
