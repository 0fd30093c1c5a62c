#include "backends/cpu/cpu_device.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <utility>

#include "backends/cpu/kernels.h"
#include "backends/cpu/packed_weight.h"
#include "backends/cpu/schedule.h"
#include "core/error.h"
#include "core/row_stride.h"

namespace quintet {

namespace {

constexpr size_t kItemElements = size_t{1} << 14;  // of row-wise work, per item

// Calls f(row) for n rows of `cols` elements.
template <typename F>
void for_rows(ThreadPool& pool, int64_t n, int64_t cols, const F& f) {
  const int64_t rows_per_item =
      std::max<int64_t>(1, static_cast<int64_t>(kItemElements) / std::max<int64_t>(1, cols));
  pool.parallel_for((n + rows_per_item - 1) / rows_per_item, [&](int64_t item) {
    const int64_t end = std::min(n, (item + 1) * rows_per_item);
    for (int64_t row = item * rows_per_item; row < end; ++row) f(row);
  });
}

int thread_count(const CpuDeviceOptions& options) {
  if (options.threads > 0) return options.threads;
  return std::max(1, static_cast<int>(options.cores.size()));
}

std::byte* row_bytes(const Tensor& t, int64_t row) {
  const auto at = static_cast<size_t>(t.offset() + row * t.stride()) * size_of(t.dtype());
  return static_cast<std::byte*>(t.buffer()->host()) + at;
}

}  // namespace

CpuDevice::CpuDevice(CpuDeviceOptions options)
    : name_(options.name),
      isa_(options.isa ? *options.isa : best_isa()),
      lending_(options.lending ? options.lending : CoreLending::of_process()),
      memory_(std::make_shared<CpuMemory>(options.name)),
      pool_(options.cores, thread_count(options), lending_) {
  if (!has_isa(isa_)) {
    fail(ErrorKind::kDevice, "{}: this processor has no {}", name_, name_of(isa_));
  }
}

MemoryInfo CpuDevice::memory() const { return memory_->info(); }

void CpuDevice::empty_cache() { memory_->empty_cache(); }

bool CpuDevice::lend_until(const std::function<bool()>& stop) {
  return lending_->help_until(pool_, stop);
}

void CpuDevice::wake() { lending_->wake(); }

Tensor CpuDevice::allocate(int64_t rows, int64_t cols, DType dtype) {
  assert(rows >= 0 && cols >= 0);
  const int64_t stride = rows > 1 ? row_stride(cols, dtype) : cols;
  const size_t bytes = static_cast<size_t>(rows * stride) * size_of(dtype);
  return {memory_->allocate(bytes), rows, cols, stride, dtype};
}

void CpuDevice::upload(const void* host, const Tensor& dst) {
  if (dst.empty()) return;
  const size_t bytes = static_cast<size_t>(dst.cols()) * size_of(dst.dtype());
  for_rows(pool_, dst.rows(), dst.cols(), [&](int64_t row) {
    std::memcpy(row_bytes(dst, row),
                static_cast<const std::byte*>(host) + static_cast<size_t>(row) * bytes, bytes);
  });
}

void CpuDevice::download(const Tensor& src, void* host) {
  if (src.empty()) return;
  const size_t bytes = static_cast<size_t>(src.cols()) * size_of(src.dtype());
  for_rows(pool_, src.rows(), src.cols(), [&](int64_t row) {
    std::memcpy(static_cast<std::byte*>(host) + static_cast<size_t>(row) * bytes,
                row_bytes(src, row), bytes);
  });
}

std::unique_ptr<Weight> CpuDevice::pack(std::span<const HostView> parts, PackOptions options) {
  return std::make_unique<PackedWeight>(parts, options, isa_, *memory_, pool_);
}

void CpuDevice::embedding(std::span<const int32_t> ids, const Tensor& table, const Tensor& y,
                          bool accumulate) {
  assert(static_cast<int64_t>(ids.size()) == y.rows() && table.cols() == y.cols());
  const RowKernels& kernels = row_kernels(isa_);
  const auto cols = static_cast<size_t>(y.cols());
  for_rows(pool_, y.rows(), y.cols(), [&](int64_t row) {
    const std::byte* from = row_bytes(table, ids[static_cast<size_t>(row)]);
    float* to = y.row<float>(row);
    if (!accumulate) {
      kernels.widen(from, table.dtype(), cols, to);
    } else if (table.dtype() == DType::kFloat32) {
      kernels.add(reinterpret_cast<const float*>(from), cols, to);
    } else {
      auto* wide = reinterpret_cast<float*>(thread_scratch(cols * sizeof(float)));
      kernels.widen(from, table.dtype(), cols, wide);
      kernels.add(wide, cols, to);
    }
  });
}

void CpuDevice::weight_rows(std::span<const int32_t> ids, const Weight& w, const Tensor& y) {
  assert(static_cast<int64_t>(ids.size()) == y.rows() && w.d_in() == y.cols());
  const auto& packed = dynamic_cast<const PackedWeight&>(w);
  for_rows(pool_, y.rows(), y.cols(), [&](int64_t row) {
    packed.widen_row(ids[static_cast<size_t>(row)], y.row<float>(row));
  });
}

void CpuDevice::rms_norm(const Tensor& x, const Tensor& weight, float eps, const Tensor& y) {
  assert(x.rows() == y.rows() && x.cols() == y.cols() && weight.cols() == x.cols());
  const RowKernels& kernels = row_kernels(isa_);
  for_rows(pool_, x.rows(), x.cols(), [&](int64_t row) {
    kernels.rms_norm(x.row<float>(row), weight.row<float>(0), eps, static_cast<size_t>(x.cols()),
                     y.row<float>(row));
  });
}

void CpuDevice::layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, float eps,
                           const Tensor& y) {
  assert(x.rows() == y.rows() && x.cols() == y.cols());
  assert(weight.cols() == x.cols() && bias.cols() == x.cols());
  const RowKernels& kernels = row_kernels(isa_);
  for_rows(pool_, x.rows(), x.cols(), [&](int64_t row) {
    kernels.layer_norm(x.row<float>(row), weight.row<float>(0), bias.row<float>(0), eps,
                       static_cast<size_t>(x.cols()), y.row<float>(row));
  });
}

void CpuDevice::linear(const Tensor& x, const Weight& w, const Epilogue& epilogue,
                       const Tensor& y) {
  const auto& packed = dynamic_cast<const PackedWeight&>(w);
  assert(packed.isa() == isa_ && x.cols() == w.d_in() && y.cols() == w.d_out());
  assert(x.rows() == y.rows());
  assert(epilogue.bias.empty() || (!w.gated() && epilogue.bias.cols() == w.d_out()));
  if (x.rows() == 0) return;
  run_linear({x.row<float>(0), x.stride()}, static_cast<size_t>(x.rows()), packed.view(), epilogue,
             {y.row<float>(0), y.stride()}, isa_, pool_);
}

void CpuDevice::attention(const Tensor& q, const Tensor& k, const Tensor& v,
                          const Tensor& position_bias, const MicroBatch& batch, int64_t first_row,
                          const AttentionArgs& args, const Tensor& y) {
  assert(q.cols() == args.n_heads * args.d_kv && k.rows() == batch.n_tokens());
  run_attention(q, k, v, position_bias, batch, first_row, args, y, isa_, pool_);
}

void CpuDevice::pool(const Tensor& x, std::span<const int32_t> begin, std::span<const int32_t> end,
                     Pooling pooling, bool normalize, const Tensor& y) {
  assert(begin.size() == end.size() && static_cast<int64_t>(begin.size()) == y.rows());
  const RowKernels& kernels = row_kernels(isa_);
  const auto cols = static_cast<size_t>(y.cols());
  pool_.parallel_for(y.rows(), [&](int64_t s) {
    float* out = y.row<float>(s);
    std::fill_n(out, cols, 0.0F);
    int64_t from = begin[static_cast<size_t>(s)];
    int64_t to = end[static_cast<size_t>(s)];
    if (from >= to) return;
    if (pooling == Pooling::kFirst) to = from + 1;
    if (pooling == Pooling::kLast) from = to - 1;
    for (int64_t row = from; row < to; ++row) kernels.add(x.row<float>(row), cols, out);
    if (to - from > 1) {
      const auto n = static_cast<float>(to - from);
      for (size_t j = 0; j < cols; ++j) out[j] /= n;
    }
    if (!normalize) return;
    const float norm = std::sqrt(kernels.sum_of_squares(out, cols));
    if (norm > 0.0F) {
      for (size_t j = 0; j < cols; ++j) out[j] /= norm;
    }
  });
}

}  // namespace quintet
