// Cuts a matrix product, and attention over a packed batch, into items for a pool's threads.
#ifndef QUINTET_BACKENDS_CPU_SCHEDULE_H_
#define QUINTET_BACKENDS_CPU_SCHEDULE_H_

#include "backends/cpu/kernels.h"
#include "backends/cpu/thread_pool.h"
#include "backends/device.h"

namespace quintet {

// See Device::linear and Device::attention; all tensors are in the host's memory.
void run_linear(const MatrixView& x, size_t rows, const PanelView& w, const Epilogue& epilogue,
                const MatrixView& y, Isa isa, ThreadPool& pool);
void run_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& position_bias,
                   const MicroBatch& batch, int64_t first_row, const AttentionArgs& args,
                   const Tensor& y, Isa isa, ThreadPool& pool);

}  // namespace quintet

#endif  // QUINTET_BACKENDS_CPU_SCHEDULE_H_
