#include "backends/opencl/opencl_device.h"
#include "backends/opencl/queue_session.h"
#include "core/error.h"

namespace quintet::opencl {

void OpenclDevice::attention(const Tensor& /*q*/, const Tensor& /*k*/, const Tensor& /*v*/,
                             const Tensor& /*position_bias*/, const MicroBatch& /*batch*/,
                             int64_t /*first_row*/, const AttentionArgs& /*args*/,
                             const Tensor& /*y*/) {
  fail(ErrorKind::kDevice, "attention: not there yet");
}
std::unique_ptr<KvCache> OpenclDevice::make_kv_cache(const KvShape& /*shape*/,
                                                     int64_t /*n_pages*/) {
  fail(ErrorKind::kDevice, "make_kv_cache: not there yet");
}
void OpenclDevice::kv_copy(std::span<const PageCopy> /*copies*/, KvCache& /*cache*/) {
  fail(ErrorKind::kDevice, "kv_copy: not there yet");
}
void OpenclDevice::kv_write(const Tensor& /*k*/, const Tensor& /*v*/,
                            std::span<const int32_t> /*slots*/, KvCache& /*cache*/) {
  fail(ErrorKind::kDevice, "kv_write: not there yet");
}
void OpenclDevice::cached_attention(const Tensor& /*q*/, const KvCache& /*cache*/,
                                    const PageTable& /*pages*/, const Tensor& /*position_bias*/,
                                    const AttentionArgs& /*args*/, const Tensor& /*y*/) {
  fail(ErrorKind::kDevice, "cached_attention: not there yet");
}

}  // namespace quintet::opencl
