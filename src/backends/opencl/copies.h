// Copies between the host and tensors, beside the ops: a queue of their own, through pinned memory
// where that helps.
#ifndef QUINTET_BACKENDS_OPENCL_COPIES_H_
#define QUINTET_BACKENDS_OPENCL_COPIES_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "backends/opencl/opencl.h"
#include "backends/opencl/pinned.h"
#include "core/tensor.h"

namespace quintet::opencl {

class Copies {
 public:
  // pinned: every copy goes through pinned memory, as is good for devices with memory of their own.
  Copies(const cl::Context& context, const cl::CommandQueue& queue, bool pinned)
      : queue_(queue), ring_(context, queue), pinned_(pinned) {}

  // Writes to the rows of `dst`, which lie in `memory`, once `before` has happened. The host's rows
  // are read before this returns. Returns an event that later ops must wait for; none: it is done.
  std::optional<cl::Event> write(const void* host, const Tensor& dst, const cl::Buffer& memory,
                                 const std::vector<cl::Event>& before);
  // Done on return; `src` holds already what is to be read.
  void read(const Tensor& src, const cl::Buffer& memory, void* host);
  void finish() { queue_.finish(); }

 private:
  cl::CommandQueue queue_;
  PinnedRing ring_;
  const bool pinned_;
};

}  // namespace quintet::opencl

#endif  // QUINTET_BACKENDS_OPENCL_COPIES_H_
