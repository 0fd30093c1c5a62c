// An OpenCL device: the ops of Device as kernels in one in-order queue. Every op does the
// arithmetic that docs/devices.md lays down, so that its bits are those of the CPU backend wherever
// the device divides exactly.
#ifndef QUINTET_BACKENDS_OPENCL_OPENCL_DEVICE_H_
#define QUINTET_BACKENDS_OPENCL_OPENCL_DEVICE_H_

#include <memory>
#include <string>

#include "backends/device.h"

namespace quintet::opencl {

class QueueSession;

class OpenclDevice : public Device {
 public:
  explicit OpenclDevice(std::unique_ptr<QueueSession> session);
  ~OpenclDevice() override;

  // opencl_device.cpp: the device, its memory and its copies
  std::string name() const override;
  MemoryInfo memory() const override;
  void wait() override;
  bool asynchronous() const override { return true; }
  uint64_t mark() override;
  void wait_for(uint64_t mark) override;
  void download_at(uint64_t mark, const Tensor& src, void* host) override;
  void empty_cache() override;
  void manual_seed(uint64_t seed) override;
  Tensor allocate(int64_t rows, int64_t cols, DType dtype) override;
  void upload(const void* host, const Tensor& dst) override;
  void download(const Tensor& src, void* host) override;

  // opencl_linear.cpp: products
  std::unique_ptr<Weight> pack(std::span<const HostView> parts, PackOptions options) override;
  void weight_rows(std::span<const int32_t> ids, const Weight& w, const Tensor& y) override;
  void linear(const Tensor& x, const Weight& w, const Epilogue& epilogue, const Tensor& y) override;

  // opencl_rows.cpp: row by row
  void embedding(std::span<const int32_t> ids, const Tensor& table, const Tensor& y,
                 bool accumulate) override;
  void rms_norm(const Tensor& x, const Tensor& weight, float eps, const Tensor& y) override;
  void layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, float eps,
                  const Tensor& y) override;
  void pool(const Tensor& x, std::span<const int32_t> begin, std::span<const int32_t> end,
            Pooling pooling, bool normalize, const Tensor& y) override;

  // opencl_attention.cpp: attention over packed sequences and over caches
  void attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& position_bias,
                 const MicroBatch& batch, int64_t first_row, const AttentionArgs& args,
                 const Tensor& y) override;
  std::unique_ptr<KvCache> make_kv_cache(const KvShape& shape, int64_t n_pages) override;
  void kv_copy(std::span<const PageCopy> copies, KvCache& cache) override;
  void kv_write(const Tensor& k, const Tensor& v, std::span<const int32_t> slots,
                KvCache& cache) override;
  void cached_attention(const Tensor& q, const KvCache& cache, const PageTable& pages,
                        const Tensor& position_bias, const AttentionArgs& args,
                        const Tensor& y) override;

  // opencl_logits.cpp: choosing tokens
  void log_softmax(const Tensor& x) override;
  void edit(std::span<const LogitEdit> edits, const Tensor& x) override;
  void top_k(const Tensor& x, int64_t k, std::span<int32_t> ids, std::span<float> values) override;
  void pick(const Tensor& x, std::span<const int32_t> rows, std::span<const int32_t> columns,
            std::span<float> values) override;

 private:
  std::unique_ptr<QueueSession> session_;
};

}  // namespace quintet::opencl

#endif  // QUINTET_BACKENDS_OPENCL_OPENCL_DEVICE_H_
