#include "backends/opencl/opencl_device.h"
#include "backends/opencl/queue_session.h"
#include "core/error.h"

namespace quintet::opencl {

std::unique_ptr<Weight> OpenclDevice::pack(std::span<const HostView> /*parts*/,
                                           PackOptions /*options*/) {
  fail(ErrorKind::kDevice, "pack: not there yet");
}
void OpenclDevice::weight_rows(std::span<const int32_t> /*ids*/, const Weight& /*w*/,
                               const Tensor& /*y*/) {
  fail(ErrorKind::kDevice, "weight_rows: not there yet");
}
void OpenclDevice::linear(const Tensor& /*x*/, const Weight& /*w*/, const Epilogue& /*epilogue*/,
                          const Tensor& /*y*/) {
  fail(ErrorKind::kDevice, "linear: not there yet");
}

}  // namespace quintet::opencl
