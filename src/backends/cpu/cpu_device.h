// A set of CPU cores as a Device: own pinned threads, weights packed in panels, and results whose
// bits depend neither on the number of threads, nor on the batch, nor on the instruction set.
#ifndef QUINTET_BACKENDS_CPU_CPU_DEVICE_H_
#define QUINTET_BACKENDS_CPU_CPU_DEVICE_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/cpu/cpu_memory.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/thread_pool.h"
#include "backends/device.h"

namespace quintet {

struct CpuDeviceOptions {
  std::string name;                      // "cpu:0", "cpu[0-3]"
  std::vector<int> cores;                // OS numbers; empty: wherever the system runs the threads
  int threads = 0;                       // 0: one per core
  std::optional<Isa> isa;                // absent: the best of this machine
  std::shared_ptr<CoreLending> lending;  // null: that of the process
};

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(CpuDeviceOptions options);  // throws Error(kDevice) without AVX2

  std::string name() const override { return name_; }
  int threads() const { return pool_.threads(); }
  Isa isa() const { return isa_; }
  MemoryInfo memory() const override;
  bool host_memory() const override { return true; }
  void wait() override {}  // every call is done when it returns
  void empty_cache() override;
  void manual_seed(uint64_t /*seed*/) override {}  // nothing is drawn
  void attach_thread() override { pool_.pin_calling_thread(); }
  bool lend_until(const std::function<bool()>& stop) override;
  void wake() override;
  int64_t parts_wanted() const override { return pool_.threads(); }
  void run_parts(int64_t n, const std::function<void(int64_t)>& part) override {
    pool_.run_parts(n, part);
  }

  Tensor allocate(int64_t rows, int64_t cols, DType dtype = DType::kFloat32) override;
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
  const std::string name_;
  const Isa isa_;
  const std::shared_ptr<CoreLending> lending_;
  const std::shared_ptr<CpuMemory> memory_;
  ThreadPool pool_;
};

}  // namespace quintet

#endif  // QUINTET_BACKENDS_CPU_CPU_DEVICE_H_
