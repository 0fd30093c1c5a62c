#include "backends/opencl/copies.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace quintet::opencl {
namespace {

// A matrix of bytes in a buffer, rows `stride` apart; on the host the rows lie end to end.
struct ByteMatrix {
  size_t offset = 0;
  size_t stride = 0;
  size_t row = 0;
  size_t rows = 0;
  size_t bytes() const { return row * rows; }
};

ByteMatrix matrix_of(const Tensor& tensor) {
  const size_t element = size_of(tensor.dtype());
  ByteMatrix matrix{.offset = static_cast<size_t>(tensor.offset()) * element,
                    .stride = static_cast<size_t>(tensor.stride()) * element,
                    .row = static_cast<size_t>(tensor.cols()) * element,
                    .rows = static_cast<size_t>(tensor.rows())};
  if (matrix.rows == 1 || matrix.row == matrix.stride) {  // one piece of memory
    matrix.row *= matrix.rows;
    matrix.rows = 1;
    matrix.stride = matrix.row;
  }
  return matrix;
}

// Cut into pieces of at most `most` bytes, whole rows where they fit; in the order of the host's
// bytes.
std::vector<ByteMatrix> pieces_of(const ByteMatrix& whole, size_t most) {
  std::vector<ByteMatrix> pieces;
  const size_t rows_each = std::max<size_t>(1, most / whole.row);
  for (size_t row = 0; row < whole.rows; row += rows_each) {
    ByteMatrix rows = whole;
    rows.offset += row * whole.stride;
    rows.rows = std::min(rows_each, whole.rows - row);
    if (rows.bytes() <= most) {
      pieces.push_back(rows);
      continue;
    }
    for (size_t begin = 0; begin < rows.row; begin += most) {
      const size_t bytes = std::min(most, rows.row - begin);
      pieces.push_back({rows.offset + begin, bytes, bytes, 1});
    }
  }
  return pieces;
}

// Where a rectangle of bytes starts: [byte in a row, row, 0]; a row of the buffer is a stride.
cl::array<size_t, 3> origin(const ByteMatrix& m) {
  return {m.offset % m.stride, m.offset / m.stride, 0};
}

void enqueue_write(const cl::CommandQueue& queue, const cl::Buffer& memory, bool blocking,
                   const ByteMatrix& m, const void* host, const std::vector<cl::Event>& before,
                   cl::Event* event) {
  const cl_bool block = blocking ? CL_TRUE : CL_FALSE;
  if (m.rows == 1) {
    queue.enqueueWriteBuffer(memory, block, m.offset, m.row, host, &before, event);
  } else {
    queue.enqueueWriteBufferRect(memory, block, origin(m), {0, 0, 0}, {m.row, m.rows, 1}, m.stride,
                                 0, m.row, 0, host, &before, event);
  }
}

void enqueue_read(const cl::CommandQueue& queue, const cl::Buffer& memory, bool blocking,
                  const ByteMatrix& m, void* host, cl::Event* event) {
  const cl_bool block = blocking ? CL_TRUE : CL_FALSE;
  if (m.rows == 1) {
    queue.enqueueReadBuffer(memory, block, m.offset, m.row, host, nullptr, event);
  } else {
    queue.enqueueReadBufferRect(memory, block, origin(m), {0, 0, 0}, {m.row, m.rows, 1}, m.stride,
                                0, m.row, 0, host, nullptr, event);
  }
}

}  // namespace

std::optional<cl::Event> Copies::write(const void* host, const Tensor& dst,
                                       const cl::Buffer& memory,
                                       const std::vector<cl::Event>& before) {
  const ByteMatrix whole = matrix_of(dst);
  if (!pinned_ && before.empty()) {
    enqueue_write(queue_, memory, true, whole, host, before, nullptr);
    return std::nullopt;
  }
  const auto* from = static_cast<const std::byte*>(host);
  cl::Event done;
  for (const ByteMatrix& piece : pieces_of(whole, PinnedRing::kPieceBytes)) {
    PinnedRing::Piece& pinned = ring_.next();
    std::memcpy(pinned.memory.data(), from, piece.bytes());
    from += piece.bytes();
    enqueue_write(queue_, memory, false, piece, pinned.memory.data(), before, &pinned.last);
    queue_.flush();
    done = pinned.last;
  }
  return done;
}

void Copies::read(const Tensor& src, const cl::Buffer& memory, void* host) {
  const ByteMatrix whole = matrix_of(src);
  if (!pinned_) {
    enqueue_read(queue_, memory, true, whole, host, nullptr);
    return;
  }
  // While one piece is copied on to its place the next ones are on their way.
  struct Read {
    PinnedRing::Piece* piece;
    size_t bytes;
  };
  std::deque<Read> under_way;
  auto* to = static_cast<std::byte*>(host);
  const auto land = [&] {
    const Read read = under_way.front();
    under_way.pop_front();
    read.piece->last.wait();
    std::memcpy(to, read.piece->memory.data(), read.bytes);
    to += read.bytes;
  };
  for (const ByteMatrix& part : pieces_of(whole, PinnedRing::kPieceBytes)) {
    if (under_way.size() == PinnedRing::kPieces) land();
    PinnedRing::Piece& piece = ring_.next();
    enqueue_read(queue_, memory, false, part, piece.memory.data(), &piece.last);
    queue_.flush();
    under_way.push_back({&piece, part.bytes()});
  }
  while (!under_way.empty()) land();
}

}  // namespace quintet::opencl
