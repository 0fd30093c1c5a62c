// Weights of a linear layer in panels, and how they get there from a checkpoint's matrices.
#ifndef QUINTET_BACKENDS_CPU_PACKED_WEIGHT_H_
#define QUINTET_BACKENDS_CPU_PACKED_WEIGHT_H_

#include <memory>
#include <span>

#include "backends/cpu/cpu_memory.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/thread_pool.h"
#include "backends/device.h"
#include "core/host_view.h"

namespace quintet {

class PackedWeight final : public Weight {
 public:
  // Packs `parts`, all of one dtype, on the pool's threads. Throws Error(kFile) where a value does
  // not fit into float16, Error(kMemory) where the panels do not fit into memory.
  PackedWeight(std::span<const HostView> parts, PackOptions options, Isa isa, CpuMemory& memory,
               ThreadPool& pool);

  int64_t d_out() const override { return static_cast<int64_t>(view_.d_out); }
  int64_t d_in() const override { return static_cast<int64_t>(view_.d_in); }
  bool gated() const override { return view_.gated; }
  DType dtype() const override { return view_.dtype; }
  size_t bytes() const override { return buffer_->bytes(); }

  Isa isa() const { return isa_; }  // whose panels these are
  const PanelView& view() const { return view_; }
  void widen_row(int64_t row, float* y) const;  // y: [d_in]; of a weight without a gate

 private:
  const Isa isa_;
  const size_t lanes_;
  PanelView view_;
  std::shared_ptr<Buffer> buffer_;
};

}  // namespace quintet

#endif  // QUINTET_BACKENDS_CPU_PACKED_WEIGHT_H_
