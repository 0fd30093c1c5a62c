// Weights of a linear layer in panels on a device, and how they get there from a checkpoint's
// matrices: in pieces of the file, which a kernel puts where they belong. kernels/weights.cl tells
// the layout.
#ifndef QUINTET_BACKENDS_OPENCL_PANEL_WEIGHT_H_
#define QUINTET_BACKENDS_OPENCL_PANEL_WEIGHT_H_

#include <memory>
#include <span>

#include "backends/device.h"
#include "backends/opencl/product_shape.h"
#include "backends/opencl/session.h"

namespace quintet::opencl {

class PanelWeight final : public Weight {
 public:
  // Packs `parts`, all of one dtype. Throws Error(kFile) where a value does not fit into float16,
  // Error(kMemory) where the panels do not fit into memory.
  PanelWeight(std::span<const HostView> parts, PackOptions options, const void* owner,
              Session& session);

  int64_t d_out() const override { return d_out_; }
  int64_t d_in() const override { return d_in_; }
  bool gated() const override { return gated_; }
  DType dtype() const override { return dtype_; }
  size_t bytes() const override { return buffer_->bytes(); }
  const void* owner() const override { return owner_; }

  const PanelShape& shape() const { return shape_; }
  int64_t n_panels() const { return n_panels_; }
  const cl::Buffer& memory() const { return buffer_->memory(); }
  // The defines WIDTH and STORED of the kernels.
  std::string defines() const;

 private:
  const void* owner_;
  PanelShape shape_;
  DType dtype_;
  bool gated_;
  int64_t d_in_ = 0;
  int64_t d_out_ = 0;
  int64_t n_panels_ = 0;
  std::shared_ptr<DeviceBuffer> buffer_;
};

// STORED or SOURCE of the kernels.
int number_of(DType dtype);

}  // namespace quintet::opencl

#endif  // QUINTET_BACKENDS_OPENCL_PANEL_WEIGHT_H_
