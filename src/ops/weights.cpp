#include "ops/weights.h"

#include <algorithm>
#include <vector>

#include "core/error.h"

namespace quintet::ops {
namespace {

constexpr size_t kChunkBytes = size_t{1} << 20;

bool is_floating(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kBFloat16 || dtype == DType::kFloat16;
}

void check_view(const HostView& view, DType dtype) {
  if (view.shape.empty() || view.shape.size() > 2) {
    fail(ErrorKind::kFile, "'{}' has {} dimensions, expected a vector or a matrix", view.name,
         view.shape.size());
  }
  if (!is_floating(view.dtype) || !is_floating(dtype)) {
    fail(ErrorKind::kFile, "'{}' is {} and asked for as {}, expected float32, bfloat16 or float16",
         view.name, name_of(view.dtype), name_of(dtype));
  }
}

// The columns of a transposed part that are asked for are there.
void check_columns(const HostView& part, const PackOptions& options) {
  const int64_t first = options.first_column;
  const int64_t count = options.n_columns;
  if (!options.transposed) {
    if (first == 0 && count == 0) return;
    fail(ErrorKind::kUsage, "pack: columns [{}, +{}) of '{}', which is not transposed", first,
         count, part.name);
  }
  if (first < 0 || count < 0 || first > part.cols() || count > part.cols() - first) {
    fail(ErrorKind::kFile, "'{}' is [{}, {}], columns [{}, +{}) of it are asked for", part.name,
         part.rows(), part.cols(), first, count);
  }
}

}  // namespace

std::unique_ptr<Weight> pack(Device& device, std::span<const HostView> parts, PackOptions options) {
  if (parts.empty() || (options.gated && parts.size() != 2)) {
    fail(ErrorKind::kUsage, "pack: {} parts of a weight, expected {}", parts.size(),
         options.gated ? "two, the second the gate" : "one or more");
  }
  for (const HostView& part : parts) {
    check_view(part, options.dtype);
    check_columns(part, options);
    const bool same_rows = part.rows() == parts[0].rows();
    const bool same_cols = part.cols() == parts[0].cols();
    if (options.gated ? !(same_rows && same_cols) : !(options.transposed ? same_rows : same_cols)) {
      fail(ErrorKind::kFile, "'{}' is [{}, {}], '{}' beside it [{}, {}]", part.name, part.rows(),
           part.cols(), parts[0].name, parts[0].rows(), parts[0].cols());
    }
    if (part.dtype != parts[0].dtype) {
      fail(ErrorKind::kFile, "'{}' is {}, '{}' beside it {}; store both in one dtype", part.name,
           name_of(part.dtype), parts[0].name, name_of(parts[0].dtype));
    }
  }
  return device.pack(parts, options);
}

Tensor upload_table(Device& device, const HostView& view, DType dtype) {
  check_view(view, dtype);
  const int64_t cols = view.cols();
  Tensor table = device.allocate(view.rows(), cols, dtype);
  const auto row_bytes = std::max<size_t>(static_cast<size_t>(cols) * sizeof(float), 1);
  const auto step = static_cast<int64_t>(std::max<size_t>(kChunkBytes / row_bytes, 1));
  std::vector<float> wide;
  std::vector<std::byte> packed;
  for (int64_t row = 0; row < view.rows(); row += step) {
    const int64_t count = std::min(step, view.rows() - row);
    const Tensor part = table.rows(row, count);
    if (view.dtype == dtype) {
      device.upload(view.row(row), part);
    } else {
      const auto n = static_cast<size_t>(count * cols);
      wide.resize(n);
      packed.resize(n * size_of(dtype));
      widen(view.row(row), view.dtype, n, wide.data());
      narrow(wide.data(), n, dtype, packed.data());
      device.upload(packed.data(), part);
    }
    view.release_rows(row, count);
  }
  return table;
}

Tensor upload_vector(Device& device, const HostView& view) {
  check_view(view, DType::kFloat32);
  std::vector<float> values(static_cast<size_t>(view.rows() * view.cols()));
  widen(view.data, view.dtype, values.size(), values.data());
  Tensor vector = device.allocate(1, static_cast<int64_t>(values.size()));
  device.upload(values.data(), vector);
  return vector;
}

}  // namespace quintet::ops
