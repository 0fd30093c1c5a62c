// The yardstick: every op written the plain way, summed in double, on plain host memory. Slow on
// purpose; the contract test compares every other device with it.
#ifndef QUINTET_BACKENDS_REFERENCE_REFERENCE_DEVICE_H_
#define QUINTET_BACKENDS_REFERENCE_REFERENCE_DEVICE_H_

#include <atomic>
#include <memory>
#include <span>
#include <string>

#include "backends/device.h"

namespace quintet {

// Bytes held by one device's buffers; shared, as a buffer may outlive its device.
class MemoryCount {
 public:
  void add(size_t bytes);
  void remove(size_t bytes) { used_ -= bytes; }
  size_t used() const { return used_; }
  size_t peak() const { return peak_; }

 private:
  std::atomic<size_t> used_ = 0;
  std::atomic<size_t> peak_ = 0;
};

class ReferenceDevice : public Device {
 public:
  explicit ReferenceDevice(std::string name = "reference:0");

  std::string name() const override { return name_; }
  MemoryInfo memory() const override;
  bool host_memory() const override { return true; }
  void wait() override {}
  void empty_cache() override {}
  void manual_seed(uint64_t) override {}

  Tensor allocate(int64_t rows, int64_t cols, DType dtype) override;
  void upload(const void* host, const Tensor& dst) override;
  void download(const Tensor& src, void* host) override;
  std::unique_ptr<Weight> pack(std::span<const HostView> parts, PackOptions options) override;

  void embedding(std::span<const int32_t> ids, const Tensor& table, const Tensor& y,
                 bool accumulate = false) override;
  void weight_rows(std::span<const int32_t> ids, const Weight& w, const Tensor& y) override;
  void rms_norm(const Tensor& x, const Tensor& weight, float eps, const Tensor& y) override;
  void layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, float eps,
                  const Tensor& y) override;
  void linear(const Tensor& x, const Weight& w, const Epilogue& epilogue, const Tensor& y) override;
  void attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& position_bias,
                 const MicroBatch& batch, int64_t first_row, const AttentionArgs& args,
                 const Tensor& y) override;
  void pool(const Tensor& x, std::span<const int32_t> begin, std::span<const int32_t> end,
            Pooling pooling, bool normalize, const Tensor& y) override;

  std::unique_ptr<KvCache> make_kv_cache(const KvShape& shape, int64_t n_pages) override;
  void kv_copy(std::span<const PageCopy> copies, KvCache& cache) override;
  void kv_write(const Tensor& k, const Tensor& v, std::span<const int32_t> slots,
                KvCache& cache) override;
  void cached_attention(const Tensor& q, const KvCache& cache, const PageTable& pages,
                        const Tensor& position_bias, const AttentionArgs& args,
                        const Tensor& y) override;

  void log_softmax(const Tensor& x) override;
  void edit(std::span<const LogitEdit> edits, const Tensor& x) override;
  void top_k(const Tensor& x, int64_t k, std::span<int32_t> ids, std::span<float> values) override;
  void pick(const Tensor& x, std::span<const int32_t> rows, std::span<const int32_t> columns,
            std::span<float> values) override;

 private:
  std::string name_;
  std::shared_ptr<MemoryCount> count_ = std::make_shared<MemoryCount>();
};

}  // namespace quintet

#endif  // QUINTET_BACKENDS_REFERENCE_REFERENCE_DEVICE_H_
