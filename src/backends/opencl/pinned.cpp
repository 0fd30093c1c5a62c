#include "backends/opencl/pinned.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace quintet::opencl {
namespace {

constexpr size_t kSmallestSlot = 256;
constexpr size_t kChunk = size_t{256} << 10;

}  // namespace

PinnedMemory::PinnedMemory(const cl::Context& context, cl::CommandQueue queue, size_t bytes)
    : queue_(std::move(queue)),
      memory_(context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes),
      data_(static_cast<std::byte*>(
          queue_.enqueueMapBuffer(memory_, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, bytes))) {}

PinnedMemory::PinnedMemory(PinnedMemory&& other) noexcept
    : queue_(std::move(other.queue_)),
      memory_(std::move(other.memory_)),
      data_(std::exchange(other.data_, nullptr)) {}

PinnedMemory::~PinnedMemory() {
  if (data_ == nullptr) return;
  try {
    queue_.enqueueUnmapMemObject(memory_, data_);
  } catch (const cl::Error&) {
    // the driver has given up: nothing is left to undo
  }
}

PinnedRing::Piece& PinnedRing::next() {
  if (pieces_.size() < kPieces) {
    pieces_.push_back({.memory = {context_, queue_, kPieceBytes}, .last = {}});
    return pieces_.back();
  }
  Piece& piece = pieces_[next_];
  next_ = (next_ + 1) % kPieces;
  if (piece.last() != nullptr) piece.last.wait();
  return piece;
}

StagedArrays::Slot StagedArrays::make(size_t bytes) {
  Slot slot;
  slot.memory = cl::Buffer(context_, CL_MEM_READ_ONLY, bytes);
  if (chunk_left_ < bytes) {
    chunk_left_ = std::max(kChunk, bytes);
    chunks_.emplace_back(context_, queue_, chunk_left_);
  }
  chunk_left_ -= bytes;
  slot.host = chunks_.back().data() + chunk_left_;
  return slot;
}

bool StagedArrays::is_free(const Slot& slot) {
  return slot.memory.getInfo<CL_MEM_REFERENCE_COUNT>() == 1 &&
         slot.written.getInfo<CL_EVENT_COMMAND_EXECUTION_STATUS>() <= CL_COMPLETE;
}

cl::Buffer StagedArrays::stage(const void* values, size_t bytes) {
  const size_t size = std::max(kSmallestSlot, std::bit_ceil(bytes));
  std::deque<Slot>& slots = slots_[size];
  if (!slots.empty() && is_free(slots.front())) {
    slots.push_back(std::move(slots.front()));
    slots.pop_front();
  } else {
    slots.push_back(make(size));
  }
  Slot& slot = slots.back();
  std::memcpy(slot.host, values, bytes);
  queue_.enqueueWriteBuffer(slot.memory, CL_FALSE, 0, std::max<size_t>(bytes, 1), slot.host,
                            nullptr, &slot.written);
  return slot.memory;
}

}  // namespace quintet::opencl
