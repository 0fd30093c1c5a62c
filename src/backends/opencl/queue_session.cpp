#include "backends/opencl/queue_session.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "backends/opencl/opencl_error.h"
#include "core/error.h"
#include "core/human.h"

namespace quintet::opencl {
namespace {

constexpr uint64_t kOpsPerMarker = 16;
constexpr size_t kMostStaged = size_t{4} << 20;  // bytes under way at once
constexpr size_t kElementwiseGroup = 64;

// The largest power of two that divides the work-items and is no larger than a group may be.
size_t elementwise_group(size_t global, size_t most) {
  size_t size = 1;
  while (global % (2 * size) == 0 && 2 * size <= std::min(most, kElementwiseGroup)) size *= 2;
  return size;
}

PoolBuffer& buffer_of(const Tensor& tensor) { return static_cast<PoolBuffer&>(*tensor.buffer()); }

// A part of a device is another handle each time it is looked up; the context knows one of them.
FoundDevice in_context(FoundDevice device, const Queues& queues) {
  device.device = queues.device;
  return device;
}

}  // namespace

MatrixArg::MatrixArg(const Tensor& tensor)
    : memory(static_cast<const DeviceBuffer&>(*tensor.buffer()).memory()()),
      offset(tensor.offset()),
      stride(tensor.stride()) {}

Limits limits_of(const cl::Device& device) {
  Limits limits;
  limits.work_group = device.getInfo<CL_DEVICE_MAX_WORK_GROUP_SIZE>();
  limits.local_bytes = device.getInfo<CL_DEVICE_LOCAL_MEM_SIZE>();
  limits.local_is_cache = device.getInfo<CL_DEVICE_LOCAL_MEM_TYPE>() != CL_LOCAL;
  limits.largest_buffer = device.getInfo<CL_DEVICE_MAX_MEM_ALLOC_SIZE>();
  limits.units = std::max<cl_uint>(1, device.getInfo<CL_DEVICE_MAX_COMPUTE_UNITS>());
  limits.float_lanes = std::max<cl_uint>(1, device.getInfo<CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT>());
  limits.host_memory = uses_host_memory(device);
  limits.exact_divide =
      (device.getInfo<CL_DEVICE_SINGLE_FP_CONFIG>() & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
  return limits;
}

QueueSession::QueueSession(const FoundDevice& device, const SessionOptions& options)
    : name_(device.info.name),
      queues_(guarded(name_, [&] { return borrow_queues(device, options.kernel_folder); })),
      device_(in_context(device, queues_)),
      limits_(options.limits.has_value()
                  ? *options.limits
                  : guarded(name_, [&] { return limits_of(device.device); })),
      pinned_(options.pinned.value_or(!limits_.host_memory)),
      context_(queues_.context),
      ops_(queues_.ops),
      copy_queue_(queues_.copies),
      copies_(context_, copy_queue_, pinned_),
      staged_(context_, ops_),
      programs_(*queues_.programs),
      kernel_folder_(options.kernel_folder) {
  const auto commit = [queue = copy_queue_, lazy = !limits_.host_memory](const cl::Buffer& buffer) {
    if (!lazy) return;
    queue.enqueueMigrateMemObjects({buffer}, CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED);
    queue.finish();
  };
  memory_ =
      guarded(name_, [&] { return std::make_shared<DeviceMemory>(device_, context_, commit); });
}

QueueSession::~QueueSession() {
  try {
    ops_.finish();
    copies_.finish();
    give_back_queues(name_, kernel_folder_, queues_);
  } catch (const cl::Error&) {
    // nobody is left to tell, and the queues are of no use any more
  }
}

cl::Kernel& QueueSession::kernel(const char* source, const char* name, const std::string& defines) {
  return programs_.kernel(source, name, defines);
}

cl::Buffer QueueSession::stage(const void* values, size_t bytes) {
  return guarded(name_, [&] {
    staged_bytes_ += bytes;
    if (staged_bytes_ > kMostStaged) {  // the driver keeps them until the ops are done
      ops_.finish();
      staged_bytes_ = bytes;
    }
    if (pinned_) return staged_.stage(values, bytes);
    // Main memory: the driver copies the values before it returns.
    const void* from = bytes == 0 ? static_cast<const void*>("") : values;
    return cl::Buffer(context_, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, std::max<size_t>(bytes, 1),
                      const_cast<void*>(from));
  });
}

std::shared_ptr<DeviceBuffer> QueueSession::allocate(size_t bytes, const std::string& what) {
  return guarded(name_, [&] { return memory_->allocate(bytes, what); });
}

cl::Buffer QueueSession::scratch(size_t bytes) {
  if (scratch_ == nullptr || scratch_->bytes() < bytes) {
    scratch_.reset();
    scratch_ = allocate(bytes, "scratch memory of an op");
  }
  return scratch_->memory();
}

void QueueSession::write(const void* host, const cl::Buffer& to, size_t offset, size_t bytes) {
  if (bytes == 0) return;
  guarded(name_, [&] { ops_.enqueueWriteBuffer(to, CL_TRUE, offset, bytes, host); });
}

void QueueSession::read(const cl::Buffer& from, size_t offset, size_t bytes, void* host) {
  if (bytes == 0) return;
  guarded(name_, [&] { ops_.enqueueReadBuffer(from, CL_TRUE, offset, bytes, host); });
}

void QueueSession::copy(const cl::Buffer& from, size_t from_offset, const cl::Buffer& to,
                        size_t to_offset, size_t bytes) {
  if (bytes == 0) return;
  guarded(name_, [&] { ops_.enqueueCopyBuffer(from, to, from_offset, to_offset, bytes); });
  op_enqueued();
}

void QueueSession::set_bytes(cl::Kernel& kernel, cl_uint index, size_t bytes, const void* value) {
  guarded(name_, [&] { kernel.setArg(index, bytes, value); });
}

void QueueSession::enqueue(const cl::Kernel& kernel, Range global, Range local) {
  if (global[0] == 0 || global[1] == 0 || global[2] == 0) return;
  if (local[0] == 0) local = {elementwise_group(global[0], limits_.work_group), 1, 1};
  const cl::NDRange range(global[0], global[1], global[2]);
  const cl::NDRange group(local[0], local[1], local[2]);
  guarded(name_, [&] { ops_.enqueueNDRangeKernel(kernel, cl::NullRange, range, group); });
  op_enqueued();
}

void QueueSession::op_enqueued() {
  memory_->count_op();
  if (memory_->ops() % kOpsPerMarker != 0) return;
  done();
  const std::scoped_lock lock(mutex_);
  guarded(name_, [&] { put_marker(); });
}

// The caller holds the lock.
QueueSession::Marker QueueSession::put_marker() {
  Marker marker{.ticket = memory_->ops(), .event = {}};
  ops_.enqueueMarkerWithWaitList(nullptr, &marker.event);
  ops_.flush();
  markers_.push_back(marker);
  return marker;
}

// The first marker at or behind a ticket; the caller holds the lock.
QueueSession::Marker QueueSession::marker_at(uint64_t ticket) {
  for (const Marker& marker : markers_) {
    if (marker.ticket >= ticket) return marker;
  }
  return put_marker();
}

uint64_t QueueSession::done() {
  const std::scoped_lock lock(mutex_);
  while (!markers_.empty()) {
    const auto status = markers_.front().event.getInfo<CL_EVENT_COMMAND_EXECUTION_STATUS>();
    if (status != CL_COMPLETE) break;
    done_ = markers_.front().ticket;
    markers_.pop_front();
  }
  return done_;
}

void QueueSession::wait_event(const cl::Event& event) {
  try {
    event.wait();
    const auto status = event.getInfo<CL_EVENT_COMMAND_EXECUTION_STATUS>();
    if (status < 0) throw cl::Error(status, "an op");
  } catch (const cl::Error& error) {
    fail(ErrorKind::kDevice, "{}: an op enqueued earlier failed: {}", name_,
         error_text(error.err()));
  }
}

void QueueSession::empty_cache() {
  scratch_.reset();
  memory_->empty_cache();
}

void QueueSession::wait() {
  wait_for(mark());
  guarded(name_, [&] { copies_.finish(); });
}

uint64_t QueueSession::mark() {
  const std::scoped_lock lock(mutex_);
  return guarded(name_, [&] { return marker_at(memory_->ops()).ticket; });
}

void QueueSession::wait_for(uint64_t mark) {
  if (mark <= done()) return;
  Marker marker;
  {
    const std::scoped_lock lock(mutex_);
    marker = guarded(name_, [&] { return marker_at(mark); });
  }
  wait_event(marker.event);
}

void QueueSession::upload(const void* host, const Tensor& dst) {
  if (dst.empty()) return;
  PoolBuffer& buffer = buffer_of(dst);
  guarded(name_, [&] {
    const uint64_t finished = done();
    memory_->freshen(buffer, finished);
    const uint64_t ticket = buffer.seen_by_ops() ? memory_->ops() : buffer.ticket();
    std::vector<cl::Event> before;
    if (ticket > finished) {
      const std::scoped_lock lock(mutex_);
      before.push_back(marker_at(ticket).event);
    }
    const auto copied = copies_.write(host, dst, buffer.memory_for_copies(), before);
    if (!copied) return;
    const std::vector<cl::Event> wanted = {*copied};
    ops_.enqueueBarrierWithWaitList(&wanted);
  });
}

void QueueSession::download_at(uint64_t mark, const Tensor& src, void* host) {
  wait_for(mark);
  if (src.empty()) return;
  guarded(name_, [&] { copies_.read(src, buffer_of(src).memory_for_copies(), host); });
}

}  // namespace quintet::opencl
