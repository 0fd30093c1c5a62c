// What is done row by row: taking rows of a table, norms, pooling.
#include <cassert>
#include <string>
#include <vector>

#include "backends/opencl/opencl_device.h"
#include "backends/opencl/queue_session.h"
#include "backends/opencl/row_lanes.h"

namespace quintet::opencl {
namespace {

constexpr const char* kSource = "rows";

cl_int count(int64_t n) { return static_cast<cl_int>(n); }

}  // namespace

void OpenclDevice::embedding(std::span<const int32_t> ids, const Tensor& table, const Tensor& y,
                             bool accumulate) {
  assert(static_cast<int64_t>(ids.size()) == y.rows() && table.cols() == y.cols());
  if (y.empty()) return;
  const RowLanes lanes(session_->limits());
  std::string defines = lanes.defines();
  if (table.dtype() == DType::kBFloat16) defines += " -D TABLE_BFLOAT16";
  if (table.dtype() == DType::kFloat16) defines += " -D TABLE_FLOAT16";
  if (accumulate) defines += " -D ACCUMULATE";
  cl::Kernel& kernel = session_->kernel(kSource, "embedding", defines);
  session_->launch(kernel, lanes.global(y.rows(), lanes.column_parts(y.cols())), lanes.local(),
                   session_->stage(ids), MatrixArg(table), MatrixArg(y), count(y.rows()),
                   count(y.cols()));
}

void OpenclDevice::rms_norm(const Tensor& x, const Tensor& weight, float eps, const Tensor& y) {
  assert(x.rows() == y.rows() && x.cols() == y.cols() && weight.cols() == x.cols());
  if (x.empty()) return;
  const RowLanes lanes(session_->limits());
  cl::Kernel& kernel = session_->kernel(kSource, "rms_norm", lanes.defines());
  session_->launch(kernel, lanes.global(x.rows()), lanes.local(), MatrixArg(x), MatrixArg(weight),
                   eps, MatrixArg(y), count(x.rows()), count(x.cols()));
}

void OpenclDevice::layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, float eps,
                              const Tensor& y) {
  assert(x.rows() == y.rows() && x.cols() == y.cols());
  assert(weight.cols() == x.cols() && bias.cols() == x.cols());
  if (x.empty()) return;
  const RowLanes lanes(session_->limits());
  cl::Kernel& kernel = session_->kernel(kSource, "layer_norm", lanes.defines());
  session_->launch(kernel, lanes.global(x.rows()), lanes.local(), MatrixArg(x), MatrixArg(weight),
                   MatrixArg(bias), eps, MatrixArg(y), count(x.rows()), count(x.cols()));
}

void OpenclDevice::pool(const Tensor& x, std::span<const int32_t> begin,
                        std::span<const int32_t> end, Pooling pooling, bool normalize,
                        const Tensor& y) {
  assert(begin.size() == end.size() && static_cast<int64_t>(begin.size()) == y.rows());
  if (y.empty()) return;
  std::vector<int32_t> from(begin.begin(), begin.end());
  std::vector<int32_t> to(end.begin(), end.end());
  for (size_t s = 0; s < from.size(); ++s) {
    if (from[s] >= to[s]) to[s] = from[s];
    if (from[s] == to[s]) continue;
    if (pooling == Pooling::kFirst) to[s] = from[s] + 1;
    if (pooling == Pooling::kLast) from[s] = to[s] - 1;
  }
  const RowLanes lanes(session_->limits());
  cl::Kernel& kernel = session_->kernel(kSource, "pool_rows", lanes.defines());
  session_->launch(kernel, lanes.global(y.rows(), lanes.column_parts(y.cols())), lanes.local(),
                   MatrixArg(x), session_->stage(std::span<const int32_t>(from)),
                   session_->stage(std::span<const int32_t>(to)), MatrixArg(y), count(y.rows()),
                   count(y.cols()));
  if (!normalize) return;
  cl::Kernel& normalizing = session_->kernel(kSource, "normalize_rows", lanes.defines());
  session_->launch(normalizing, lanes.global(y.rows()), lanes.local(), MatrixArg(y),
                   count(y.rows()), count(y.cols()));
}

}  // namespace quintet::opencl
