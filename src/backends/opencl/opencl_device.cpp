#include "backends/opencl/opencl_device.h"

#include <fmt/format.h>

#include <utility>

#include "backends/opencl/queue_session.h"
#include "core/row_stride.h"

namespace quintet::opencl {

OpenclDevice::OpenclDevice(std::unique_ptr<QueueSession> session) : session_(std::move(session)) {}
OpenclDevice::~OpenclDevice() = default;

std::string OpenclDevice::name() const { return session_->device_name(); }
MemoryInfo OpenclDevice::memory() const { return session_->memory(); }
void OpenclDevice::wait() { session_->wait(); }
uint64_t OpenclDevice::mark() { return session_->mark(); }
void OpenclDevice::wait_for(uint64_t mark) { session_->wait_for(mark); }
void OpenclDevice::download_at(uint64_t mark, const Tensor& src, void* host) {
  session_->download_at(mark, src, host);
}
void OpenclDevice::empty_cache() { session_->empty_cache(); }
void OpenclDevice::manual_seed(uint64_t /*seed*/) {}  // nothing is drawn on the device

Tensor OpenclDevice::allocate(int64_t rows, int64_t cols, DType dtype) {
  const int64_t stride = row_stride(cols, dtype);
  const size_t bytes = static_cast<size_t>(rows) * static_cast<size_t>(stride) * size_of(dtype);
  return {session_->allocate(bytes, fmt::format("a tensor [{}, {}]", rows, cols)), rows, cols,
          stride, dtype};
}

void OpenclDevice::upload(const void* host, const Tensor& dst) { session_->upload(host, dst); }
void OpenclDevice::download(const Tensor& src, void* host) {
  session_->download_at(session_->mark(), src, host);
}

}  // namespace quintet::opencl
