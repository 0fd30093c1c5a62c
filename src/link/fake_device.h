// A device for tests of links, pipelines and rings: tensors in plain memory that it may claim not
// to be the host's, mean pooling, what is done with logits, and failures on demand. It has no other
// ops.
#ifndef QUINTET_LINK_FAKE_DEVICE_H_
#define QUINTET_LINK_FAKE_DEVICE_H_

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backends/device.h"
#include "core/error.h"

namespace quintet {

class FakeDevice : public Device {
 public:
  explicit FakeDevice(std::string name, bool host_memory = true)
      : name_(std::move(name)), host_memory_(host_memory) {}

  std::atomic<int64_t> live_bytes{0};            // held by tensors
  std::atomic<int> attached{0};                  // calls of attach_thread()
  std::atomic<int> downloads_until_failure{-1};  // that many succeed; -1: all
  std::thread::id driver;                        // of the last attach_thread()

  std::string name() const override { return name_; }
  MemoryInfo memory() const override { return {}; }
  bool host_memory() const override { return host_memory_; }
  void wait() override {}
  // One op of a test's stage; tensors that it uses are captured as values.
  virtual void run(std::function<void()> op) { op(); }
  void empty_cache() override {}
  void manual_seed(uint64_t /*seed*/) override {}
  void attach_thread() override {
    ++attached;
    driver = std::this_thread::get_id();
  }

  Tensor allocate(int64_t rows, int64_t cols, DType dtype = DType::kFloat32) override {
    const int64_t stride = cols + 3;  // not cols: nobody may count on that
    return {std::make_shared<Memory>(*this, static_cast<size_t>(rows * stride) * size_of(dtype)),
            rows, cols, stride, dtype};
  }
  void upload(const void* host, const Tensor& dst) override {
    for (int64_t i = 0; i < dst.rows(); ++i) {
      std::memcpy(row(dst, i), static_cast<const float*>(host) + i * dst.cols(),
                  static_cast<size_t>(dst.cols()) * sizeof(float));
    }
  }
  void download(const Tensor& src, void* host) override {
    if (downloads_until_failure >= 0 && downloads_until_failure-- == 0) {
      fail(ErrorKind::kDevice, "{}: the cable is unplugged", name_);
    }
    for (int64_t i = 0; i < src.rows(); ++i) {
      std::memcpy(static_cast<float*>(host) + i * src.cols(), row(src, i),
                  static_cast<size_t>(src.cols()) * sizeof(float));
    }
  }
  void pool(const Tensor& x, std::span<const int32_t> begin, std::span<const int32_t> end,
            Pooling /*pooling*/, bool /*normalize*/, const Tensor& y) override {
    run([x, y, begin = std::vector(begin.begin(), begin.end()),
         end = std::vector(end.begin(), end.end())] {
      for (size_t s = 0; s < begin.size(); ++s) {
        for (int64_t c = 0; c < x.cols(); ++c) {
          float sum = 0;
          for (int32_t i = begin[s]; i < end[s]; ++i) sum += row(x, i)[c];
          row(y, static_cast<int64_t>(s))[c] = sum / static_cast<float>(end[s] - begin[s]);
        }
      }
    });
  }

  void log_softmax(const Tensor& x) override {
    wait();
    for (int64_t i = 0; i < x.rows(); ++i) {
      float* const values = row(x, i);
      double sum = 0;
      for (int64_t c = 0; c < x.cols(); ++c) sum += std::exp(static_cast<double>(values[c]));
      for (int64_t c = 0; c < x.cols(); ++c) values[c] -= static_cast<float>(std::log(sum));
    }
  }
  void edit(std::span<const LogitEdit> edits, const Tensor& x) override {
    wait();
    for (const LogitEdit& edit : edits) {
      float* const values = row(x, edit.row);
      float& value = values[edit.token];
      if (edit.kind == LogitEdit::Kind::kSet) value = edit.value;
      if (edit.kind == LogitEdit::Kind::kPenalise) {
        value = value < 0 ? value * edit.value : value / edit.value;
      }
      if (edit.kind == LogitEdit::Kind::kFillRow) std::fill_n(values, x.cols(), edit.value);
    }
  }
  void top_k(const Tensor& x, int64_t k, std::span<int32_t> ids, std::span<float> best) override {
    wait();
    std::vector<int32_t> order(static_cast<size_t>(x.cols()));
    for (int64_t i = 0; i < x.rows(); ++i) {
      const float* const values = row(x, i);
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(),
                       [&](int32_t a, int32_t b) { return values[a] > values[b]; });
      for (int64_t j = 0; j < k; ++j) {
        const auto to = static_cast<size_t>(i * k + j);
        ids[to] = order[static_cast<size_t>(j)];
        best[to] = values[ids[to]];
      }
    }
  }
  void pick(const Tensor& x, std::span<const int32_t> rows, std::span<const int32_t> columns,
            std::span<float> values) override {
    wait();
    for (size_t i = 0; i < rows.size(); ++i) values[i] = row(x, rows[i])[columns[i]];
  }

  // Address of row i, whatever the memory claims to be.
  static float* row(const Tensor& tensor, int64_t i) {
    return reinterpret_cast<float*>(static_cast<Memory&>(*tensor.buffer()).bytes_.data()) +
           tensor.offset() + i * tensor.stride();
  }

  std::unique_ptr<Weight> pack(std::span<const HostView> /*parts*/,
                               PackOptions /*options*/) override {
    return nullptr;
  }
  void embedding(std::span<const int32_t> /*ids*/, const Tensor& /*table*/, const Tensor& /*y*/,
                 bool /*accumulate*/) override {}
  void weight_rows(std::span<const int32_t> /*ids*/, const Weight& /*w*/,
                   const Tensor& /*y*/) override {}
  void layer_norm(const Tensor& /*x*/, const Tensor& /*weight*/, const Tensor& /*bias*/,
                  float /*eps*/, const Tensor& /*y*/) override {}
  void rms_norm(const Tensor& /*x*/, const Tensor& /*weight*/, float /*eps*/,
                const Tensor& /*y*/) override {}
  void linear(const Tensor& /*x*/, const Weight& /*w*/, const Epilogue& /*epilogue*/,
              const Tensor& /*y*/) override {}
  void attention(const Tensor& /*q*/, const Tensor& /*k*/, const Tensor& /*v*/,
                 const Tensor& /*position_bias*/, const MicroBatch& /*batch*/,
                 int64_t /*first_row*/, const AttentionArgs& /*args*/,
                 const Tensor& /*y*/) override {}
  std::unique_ptr<KvCache> make_kv_cache(const KvShape& /*shape*/, int64_t /*n_pages*/) override {
    return nullptr;
  }
  void kv_copy(std::span<const PageCopy> /*copies*/, KvCache& /*cache*/) override {}
  void kv_write(const Tensor& /*k*/, const Tensor& /*v*/, std::span<const int32_t> /*slots*/,
                KvCache& /*cache*/) override {}
  void cached_attention(const Tensor& /*q*/, const KvCache& /*cache*/, const PageTable& /*pages*/,
                        const Tensor& /*position_bias*/, const AttentionArgs& /*args*/,
                        const Tensor& /*y*/) override {}

 private:
  struct Memory : Buffer {
    Memory(FakeDevice& device, size_t size) : device_(device), bytes_(size) {
      device_.live_bytes += static_cast<int64_t>(size);
    }
    ~Memory() override { device_.live_bytes -= static_cast<int64_t>(bytes_.size()); }
    size_t bytes() const override { return bytes_.size(); }
    void* host() override { return device_.host_memory_ ? bytes_.data() : nullptr; }

    FakeDevice& device_;
    std::vector<std::byte> bytes_;
  };

  std::string name_;
  bool host_memory_;
};

// Devices of one kind that share a board of work: a stand-in for the CPU backend's lending.
class LendingDevice : public FakeDevice {
 public:
  // Where the devices of a test meet.
  struct Board {
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<std::function<void()>> pieces;
    uint64_t wakes = 0;
  };

  LendingDevice(std::string name, Board& board) : FakeDevice(std::move(name)), board_(board) {}

  std::atomic<int> helped{0};  // pieces of others that this device's driver ran

  bool lend_until(const std::function<bool()>& stop) override {
    std::unique_lock lock(board_.mutex);
    while (true) {
      const uint64_t seen = board_.wakes;
      lock.unlock();
      if (stop()) return true;
      lock.lock();
      board_.changed.wait(lock, [&] { return board_.wakes != seen || !board_.pieces.empty(); });
      if (board_.pieces.empty()) continue;
      const std::function<void()> piece = std::move(board_.pieces.back());
      board_.pieces.pop_back();
      lock.unlock();
      piece();
      ++helped;
      lock.lock();
    }
  }
  void wake() override {
    const std::scoped_lock lock(board_.mutex);
    ++board_.wakes;
    board_.changed.notify_all();
  }

  // Runs `piece` n times, on this thread and on those that help.
  void share(int n, const std::function<void()>& piece) {
    std::atomic<int> left{n};
    {
      const std::scoped_lock lock(board_.mutex);
      for (int i = 0; i < n; ++i) {
        board_.pieces.emplace_back([&] {
          piece();
          --left;
        });
      }
      board_.changed.notify_all();
    }
    while (left > 0) {
      std::unique_lock lock(board_.mutex);
      if (board_.pieces.empty()) {
        lock.unlock();
        std::this_thread::yield();
        continue;
      }
      const std::function<void()> mine = std::move(board_.pieces.back());
      board_.pieces.pop_back();
      lock.unlock();
      mine();
    }
  }

 private:
  Board& board_;
};

}  // namespace quintet

#endif  // QUINTET_LINK_FAKE_DEVICE_H_
