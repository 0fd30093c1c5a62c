#include "pipeline/host_tensor.h"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <utility>

namespace quintet {
namespace {

struct HostBuffer : Buffer {
  explicit HostBuffer(HostRows taken) : rows(std::move(taken)) {}
  size_t bytes() const override { return rows.size() * sizeof(float); }
  void* host() override { return rows.data(); }

  HostRows rows;
};

// Copies the pieces into `rows`, one below the other.
template <typename RowAt>
void gather(const std::vector<Tensor>& pieces, const RowAt& row_at) {
  int64_t to = 0;
  for (const Tensor& piece : pieces) {
    for (int64_t i = 0; i < piece.rows(); ++i, ++to) {
      std::copy_n(piece.row<float>(i), piece.cols(), row_at(to));
    }
  }
}

}  // namespace

Tensor to_host_tensor(Device& device, const Tensor& rows, uint64_t mark, HostBuffers& buffers) {
  assert(rows.dtype() == DType::kFloat32);
  if (device.host_memory()) return rows;
  HostRows host = buffers.take(static_cast<size_t>(rows.rows() * rows.cols()));
  device.download_at(mark, rows, host.data());
  return {std::make_shared<HostBuffer>(std::move(host)), rows.rows(), rows.cols(), rows.cols(),
          DType::kFloat32};
}

int64_t SourceRows::n_rows() const {
  int64_t n = 0;
  for (const Tensor& piece : pieces_) n += piece.rows();
  return n;
}

Tensor SourceRows::on(Device& device, HostBuffers& buffers) {
  const int64_t n = n_rows();
  if (n == 0) return {};
  if (device.host_memory() && pieces_.size() == 1) return pieces_.front();
  const int64_t cols = pieces_.front().cols();
  Tensor rows = device.allocate(n, cols, DType::kFloat32);
  if (device.host_memory()) {
    gather(pieces_, [&](int64_t i) { return rows.row<float>(i); });
    pieces_ = {rows};
  } else {
    HostRows packed = buffers.take(static_cast<size_t>(n * cols));
    gather(pieces_, [&](int64_t i) { return packed.data() + i * cols; });
    device.upload(packed.data(), rows);
  }
  return rows;
}

}  // namespace quintet
