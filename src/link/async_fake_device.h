// A stand-in for a command queue: ops run in order on a thread of the device's own, copies beside
// them, and what was called and done when is written down. Ops fail where a test's closures throw.
#ifndef QUINTET_LINK_ASYNC_FAKE_DEVICE_H_
#define QUINTET_LINK_ASYNC_FAKE_DEVICE_H_

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "link/fake_device.h"

namespace quintet {

class AsyncFakeDevice : public FakeDevice {
 public:
  explicit AsyncFakeDevice(std::string name)
      : FakeDevice(std::move(name), false), queue_([this] { run_queue(); }) {}
  ~AsyncFakeDevice() override {
    {
      const std::scoped_lock lock(mutex_);
      closing_ = true;
      changed_.notify_all();
    }
    queue_.join();
  }

  std::atomic<int64_t> peak_bytes{0};

  bool asynchronous() const override { return true; }
  // An op that fails makes those behind it fail, too, as a queue that has gone bad does.
  void run(std::function<void()> op) override {
    const std::scoped_lock lock(mutex_);
    ops_.push_back(std::move(op));
    ++called_;
    changed_.notify_all();
  }
  uint64_t mark() override {
    const std::scoped_lock lock(mutex_);
    return called_;
  }
  void wait_for(uint64_t mark) override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_ >= mark; });
    if (failure_ && failed_ < mark) std::rethrow_exception(failure_);
  }
  void wait() override { wait_for(mark()); }

  Tensor allocate(int64_t rows, int64_t cols, DType dtype = DType::kFloat32) override {
    Tensor tensor = FakeDevice::allocate(rows, cols, dtype);
    peak_bytes = std::max(peak_bytes.load(), live_bytes.load());
    return tensor;
  }
  void download(const Tensor& src, void* host) override {
    wait();
    FakeDevice::download(src, host);
  }
  void download_at(uint64_t mark, const Tensor& src, void* host) override {
    wait_for(mark);
    note("download");
    FakeDevice::download(src, host);
  }

  // What happened, in order: "download" and what tests write down. Thread-safe.
  void note(const std::string& event) {
    const std::scoped_lock lock(mutex_);
    events_.push_back(event);
  }
  std::vector<std::string> events() const {
    const std::scoped_lock lock(mutex_);
    return events_;
  }

 private:
  void run_queue() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return closing_ || !ops_.empty(); });
      if (ops_.empty()) return;
      std::function<void()> op = std::move(ops_.front());
      ops_.pop_front();
      lock.unlock();
      std::exception_ptr thrown;
      try {
        if (!failure_) op();  // written by this thread alone
      } catch (...) {
        thrown = std::current_exception();
      }
      op = nullptr;  // with the tensors it holds
      lock.lock();
      if (thrown) {
        failure_ = thrown;
        failed_ = done_;
      }
      ++done_;
      changed_.notify_all();
    }
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> ops_;
  uint64_t called_ = 0;
  uint64_t done_ = 0;
  uint64_t failed_ = 0;  // ops before the one that failed
  std::exception_ptr failure_;
  bool closing_ = false;
  std::vector<std::string> events_;
  std::thread queue_;  // last: it uses the others
};

// What the devices of a test are: host memory, memory of their own, queues; host memory and queues
// in turn.
enum class FakeKind { kHost, kOther, kAsync, kMixed };

// "fake:i"
inline std::unique_ptr<FakeDevice> make_fake_device(size_t i, FakeKind kind) {
  const std::string name = "fake:" + std::to_string(i);
  if (kind == FakeKind::kAsync || (kind == FakeKind::kMixed && i % 2 == 1)) {
    return std::make_unique<AsyncFakeDevice>(name);
  }
  return std::make_unique<FakeDevice>(name, kind != FakeKind::kOther);
}

}  // namespace quintet

#endif  // QUINTET_LINK_ASYNC_FAKE_DEVICE_H_
