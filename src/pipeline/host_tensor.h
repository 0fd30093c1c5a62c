// Tensors in memory that the host addresses, for rows that travel further than one device: an
// encoder's output on its way to the decoder stages.
#ifndef QUINTET_PIPELINE_HOST_TENSOR_H_
#define QUINTET_PIPELINE_HOST_TENSOR_H_

#include <cstdint>
#include <vector>

#include "backends/device.h"
#include "core/tensor.h"
#include "link/host_buffers.h"

namespace quintet {

// `rows`, [n, d] float32 on `device` as they are at its `mark`, where the host addresses them: the
// same tensor if it already does, else a copy in memory of `buffers`. Runs on the device's thread,
// once the mark has been reached.
Tensor to_host_tensor(Device& device, const Tensor& rows, uint64_t mark, HostBuffers& buffers);

// Float32 rows in host memory that lie one below the other, in pieces, for one device after the
// other. Movable.
class SourceRows {
 public:
  SourceRows() = default;
  explicit SourceRows(std::vector<Tensor> pieces) : pieces_(std::move(pieces)) {}

  int64_t n_rows() const;
  // All rows as one tensor on `device`; an empty tensor where there are none. Pieces are joined
  // once, and a device outside host memory gets a copy at each call, through memory of `buffers`
  // where there are several. Runs on the device's thread.
  Tensor on(Device& device, HostBuffers& buffers);

 private:
  std::vector<Tensor> pieces_;
};

}  // namespace quintet

#endif  // QUINTET_PIPELINE_HOST_TENSOR_H_
