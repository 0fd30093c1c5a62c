// Host memory that a device reads and writes without its driver's own detours: pinned, mapped once
// and used again and again.
#ifndef QUINTET_BACKENDS_OPENCL_PINNED_H_
#define QUINTET_BACKENDS_OPENCL_PINNED_H_

#include <cstddef>
#include <deque>
#include <map>
#include <vector>

#include "backends/opencl/opencl.h"

namespace quintet::opencl {

// Mapped for as long as it lives.
class PinnedMemory {
 public:
  PinnedMemory(const cl::Context& context, cl::CommandQueue queue, size_t bytes);
  ~PinnedMemory();
  PinnedMemory(PinnedMemory&& other) noexcept;
  PinnedMemory& operator=(PinnedMemory&&) = delete;
  std::byte* data() const { return data_; }

 private:
  cl::CommandQueue queue_;
  cl::Buffer memory_;
  std::byte* data_ = nullptr;
};

// Pieces that large copies pass through, one after the other: a piece is free again once the copy
// that used it last is done.
class PinnedRing {
 public:
  static constexpr size_t kPieces = 4;
  static constexpr size_t kPieceBytes = size_t{4} << 20;

  PinnedRing(cl::Context context, cl::CommandQueue queue)
      : context_(std::move(context)), queue_(std::move(queue)) {}

  struct Piece {
    PinnedMemory memory;
    cl::Event last;  // null: not used yet
  };
  // The next piece, free; waits where it is not.
  Piece& next();

 private:
  const cl::Context context_;
  const cl::CommandQueue queue_;
  std::deque<Piece> pieces_;  // made when first wanted
  size_t next_ = 0;
};

// Small arrays on their way to kernels. Each has a buffer on the device and a place in pinned
// memory; both are used again for a later array once whoever got the buffer has dropped it and the
// copy is done.
class StagedArrays {
 public:
  // queue: of the ops, which run in order: a buffer that is written again still holds the old
  // values when earlier ops read it.
  StagedArrays(cl::Context context, cl::CommandQueue queue)
      : context_(std::move(context)), queue_(std::move(queue)) {}

  cl::Buffer stage(const void* values, size_t bytes);

 private:
  struct Slot {
    cl::Buffer memory;
    std::byte* host = nullptr;
    cl::Event written;
  };
  Slot make(size_t bytes);
  static bool is_free(const Slot& slot);

  const cl::Context context_;
  const cl::CommandQueue queue_;
  std::vector<PinnedMemory> chunks_;
  size_t chunk_left_ = 0;                     // bytes of the last chunk that no slot has
  std::map<size_t, std::deque<Slot>> slots_;  // by size, the one staged longest ago first
};

}  // namespace quintet::opencl

#endif  // QUINTET_BACKENDS_OPENCL_PINNED_H_
