// One OpenCL device at work: context, queues, memory, programs, and the launching of kernels. The
// files of this folder that enqueue kernels see OpenCL only through it; every OpenCL error becomes
// an Error(kDevice / kMemory) that names the device and the call.
#ifndef QUINTET_BACKENDS_OPENCL_SESSION_H_
#define QUINTET_BACKENDS_OPENCL_SESSION_H_

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "backends/device.h"
#include "backends/opencl/opencl.h"
#include "core/tensor.h"

namespace quintet::opencl {

// What the sizes of work-groups and tiles are chosen from; all as the device says.
struct Limits {
  size_t work_group = 1;        // work-items of a group
  size_t local_bytes = 0;       // local memory of a group
  bool local_is_cache = false;  // "local" memory is main memory: staging through it gains nothing
  size_t largest_buffer = 0;    // bytes of one allocation
  uint32_t units = 1;           // compute units
  uint32_t float_lanes = 1;     // native vector width; 1: scalar work-items (most GPUs)
  bool host_memory = false;     // unified with the host's
  bool exact_divide = false;    // division and square root are correctly rounded
};

// A tensor's memory; tensors of this backend have this type of buffer.
class DeviceBuffer : public Buffer {
 public:
  virtual const cl::Buffer& memory() const = 0;
};

// How a kernel gets a matrix: three arguments, `GLOBAL float* x, long x_offset, long x_stride`,
// both in elements.
struct MatrixArg {
  explicit MatrixArg(const Tensor& tensor);
  cl_mem memory = nullptr;
  cl_long offset = 0;
  cl_long stride = 0;
};

class Session {
 public:
  virtual ~Session() = default;
  virtual const std::string& device_name() const = 0;
  virtual const Limits& limits() const = 0;

  // A kernel of kernels/<source>.cl compiled with `defines` ("-D TILE=8"): from the cache on disk,
  // else built. Kept: the same arguments give the same object, whose arguments belong to its caller
  // until launched.
  virtual cl::Kernel& kernel(const char* source, const char* name,
                             const std::string& defines = {}) = 0;

  // Host values for the kernels enqueued next: copied at once, on the device when these run.
  virtual cl::Buffer stage(const void* values, size_t bytes) = 0;
  template <typename T>
  cl::Buffer stage(std::span<const T> values) {
    return stage(values.data(), values.size_bytes());
  }

  // Device memory for weights and caches, counted in memory(); what: "a weight [4096, 1024]".
  virtual std::shared_ptr<DeviceBuffer> allocate(size_t bytes, const std::string& what) = 0;
  // Memory for the kernels enqueued until the next call: what one op keeps between its kernels.
  virtual cl::Buffer scratch(size_t bytes) = 0;

  // Blocking copies in the order of the ops.
  virtual void write(const void* host, const cl::Buffer& to, size_t offset, size_t bytes) = 0;
  virtual void read(const cl::Buffer& from, size_t offset, size_t bytes, void* host) = 0;
  virtual void copy(const cl::Buffer& from, size_t from_offset, const cl::Buffer& to,
                    size_t to_offset, size_t bytes) = 0;

  // global: work-items in each dimension, multiples of local. local 0, for kernels that compute one
  // element per work-item: a power of two along the first dimension. Left to themselves some
  // drivers choose a new size for each new shape, and compile for it.
  using Range = std::array<size_t, 3>;
  virtual void enqueue(const cl::Kernel& kernel, Range global, Range local) = 0;

  // Sets the arguments from the first on and enqueues. A MatrixArg is three arguments.
  template <typename... Args>
  void launch(cl::Kernel& kernel, Range global, Range local, const Args&... args) {
    cl_uint index = 0;
    (set(kernel, index, args), ...);
    enqueue(kernel, global, local);
  }

 private:
  template <typename T>
  void set(cl::Kernel& kernel, cl_uint& index, const T& value) {
    set_bytes(kernel, index++, sizeof(T), &value);
  }
  void set(cl::Kernel& kernel, cl_uint& index, const cl::Buffer& buffer) {
    const cl_mem memory = buffer();
    set_bytes(kernel, index++, sizeof(cl_mem), &memory);
  }
  void set(cl::Kernel& kernel, cl_uint& index, const MatrixArg& matrix) {
    set_bytes(kernel, index++, sizeof(cl_mem), &matrix.memory);
    set_bytes(kernel, index++, sizeof(cl_long), &matrix.offset);
    set_bytes(kernel, index++, sizeof(cl_long), &matrix.stride);
  }
  virtual void set_bytes(cl::Kernel& kernel, cl_uint index, size_t bytes, const void* value) = 0;
};

}  // namespace quintet::opencl

#endif  // QUINTET_BACKENDS_OPENCL_SESSION_H_
