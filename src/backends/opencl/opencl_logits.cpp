#include "backends/opencl/opencl_device.h"
#include "backends/opencl/queue_session.h"
#include "core/error.h"

namespace quintet::opencl {

void OpenclDevice::log_softmax(const Tensor& /*x*/) {
  fail(ErrorKind::kDevice, "log_softmax: not there yet");
}
void OpenclDevice::edit(std::span<const LogitEdit> /*edits*/, const Tensor& /*x*/) {
  fail(ErrorKind::kDevice, "edit: not there yet");
}
void OpenclDevice::top_k(const Tensor& /*x*/, int64_t /*k*/, std::span<int32_t> /*ids*/,
                         std::span<float> /*values*/) {
  fail(ErrorKind::kDevice, "top_k: not there yet");
}
void OpenclDevice::pick(const Tensor& /*x*/, std::span<const int32_t> /*rows*/,
                        std::span<const int32_t> /*columns*/, std::span<float> /*values*/) {
  fail(ErrorKind::kDevice, "pick: not there yet");
}

}  // namespace quintet::opencl
