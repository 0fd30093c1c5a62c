// The Session over real queues: one for ops, one for copies beside them; memory counted and kept
// for reuse; kernels from the cache on disk.
//
// Every op has a ticket, counted up. Now and then a marker goes into the queue of ops: what waits
// for a ticket waits for the first marker at or behind it.
#ifndef QUINTET_BACKENDS_OPENCL_QUEUE_SESSION_H_
#define QUINTET_BACKENDS_OPENCL_QUEUE_SESSION_H_

#include <cstddef>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "backends/opencl/copies.h"
#include "backends/opencl/device_memory.h"
#include "backends/opencl/pinned.h"
#include "backends/opencl/platforms.h"
#include "backends/opencl/programs.h"
#include "backends/opencl/queues.h"
#include "backends/opencl/session.h"

namespace quintet::opencl {

struct SessionOptions {
  // Where binaries of kernels are kept; empty: nowhere.
  std::filesystem::path kernel_folder = {};
  // Whether copies go through pinned memory; unset: where the device has memory of its own.
  std::optional<bool> pinned = {};
  // What to choose sizes from in place of what the device says; for tests.
  std::optional<Limits> limits = {};
};

class QueueSession : public Session {
 public:
  explicit QueueSession(const FoundDevice& device, const SessionOptions& options = {});
  ~QueueSession() override;

  const std::string& device_name() const override { return name_; }
  const Limits& limits() const override { return limits_; }
  cl::Kernel& kernel(const char* source, const char* name, const std::string& defines) override;
  using Session::stage;
  cl::Buffer stage(const void* values, size_t bytes) override;
  std::shared_ptr<DeviceBuffer> allocate(size_t bytes, const std::string& what) override;
  cl::Buffer scratch(size_t bytes) override;
  void write(const void* host, const cl::Buffer& to, size_t offset, size_t bytes) override;
  void read(const cl::Buffer& from, size_t offset, size_t bytes, void* host) override;
  void copy(const cl::Buffer& from, size_t from_offset, const cl::Buffer& to, size_t to_offset,
            size_t bytes) override;
  void enqueue(const cl::Kernel& kernel, Range global, Range local) override;

  const cl::Context& context() const { return context_; }

  // As class Device has them.
  MemoryInfo memory() const { return memory_->info(); }
  void empty_cache();
  void wait();
  uint64_t mark();
  void wait_for(uint64_t mark);
  uint64_t done();  // a mark: the ops before it are known to be done
  void upload(const void* host, const Tensor& dst);
  void download_at(uint64_t mark, const Tensor& src, void* host);

 private:
  void set_bytes(cl::Kernel& kernel, cl_uint index, size_t bytes, const void* value) override;

  // NOLINTNEXTLINE(bugprone-exception-escape): OpenCL's handles are released with a check
  struct Marker {
    uint64_t ticket = 0;  // of the last op before it
    cl::Event event;
  };
  void op_enqueued();
  Marker marker_at(uint64_t ticket);
  Marker put_marker();
  void wait_event(const cl::Event& event);

  const std::string name_;
  const Queues queues_;
  const FoundDevice device_;  // as the context knows it
  const Limits limits_;
  const bool pinned_;
  cl::Context context_;
  cl::CommandQueue ops_;
  cl::CommandQueue copy_queue_;
  Copies copies_;
  StagedArrays staged_;
  std::shared_ptr<DeviceMemory> memory_;
  Programs& programs_;
  const std::filesystem::path kernel_folder_;
  std::shared_ptr<DeviceBuffer> scratch_;
  size_t staged_bytes_ = 0;  // since the queue was last empty
  std::mutex mutex_;         // of the markers
  std::deque<Marker> markers_;
  uint64_t done_ = 0;  // ops up to this ticket are done
};

Limits limits_of(const cl::Device& device);

}  // namespace quintet::opencl

#endif  // QUINTET_BACKENDS_OPENCL_QUEUE_SESSION_H_
