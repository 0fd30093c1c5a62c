// Log-probabilities and the best of rows of logits, on the threads of a CPU device.
#ifndef QUINTET_BACKENDS_CPU_LOGITS_H_
#define QUINTET_BACKENDS_CPU_LOGITS_H_

#include <cstdint>
#include <span>

#include "backends/cpu/isa.h"
#include "backends/cpu/thread_pool.h"
#include "core/tensor.h"

namespace quintet {

// See Device::log_softmax and Device::top_k.
void run_log_softmax(const Tensor& x, Isa isa, ThreadPool& pool);
void run_top_k(const Tensor& x, int64_t k, std::span<int32_t> ids, std::span<float> values, Isa isa,
               ThreadPool& pool);

}  // namespace quintet

#endif  // QUINTET_BACKENDS_CPU_LOGITS_H_
