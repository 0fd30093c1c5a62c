// How kernels whose rows are sixteen lanes wide (kernels/arithmetic.h) are laid out on a device: as
// vectors of single work-items where the device has vectors, else as sixteen work-items of a group.
#ifndef QUINTET_BACKENDS_OPENCL_ROW_LANES_H_
#define QUINTET_BACKENDS_OPENCL_ROW_LANES_H_

#include <algorithm>
#include <string>

#include "backends/opencl/session.h"

namespace quintet::opencl {

class RowLanes {
 public:
  explicit RowLanes(const Limits& limits)
      : in_vector_(limits.float_lanes > 1 || limits.work_group < kLanes) {
    if (in_vector_) return;
    constexpr size_t kMostRows = 8;
    rows_per_group_ =
        std::clamp(std::min(limits.work_group / kLanes, limits.local_bytes / (kLanes * 4)),
                   size_t{1}, kMostRows);
  }

  bool in_vector() const { return in_vector_; }
  std::string defines() const {
    return in_vector_ ? "-D LANES_IN_VECTOR"
                      : "-D ROWS_PER_GROUP=" + std::to_string(rows_per_group_);
  }
  Session::Range local() const { return {in_vector_ ? 1 : kLanes, rows_per_group_, 1}; }
  // For n rows, with the columns of each in parts.
  Session::Range global(int64_t n, size_t parts = 1) const {
    const auto rows = static_cast<size_t>(n);
    return {local()[0] * parts, (rows + rows_per_group_ - 1) / rows_per_group_ * rows_per_group_,
            1};
  }
  // Parts of a row's columns where sums do not tie them together: enough work for every unit.
  size_t column_parts(int64_t cols) const {
    const auto steps = (static_cast<size_t>(cols) + kLanes - 1) / kLanes;
    return in_vector_ ? 1 : std::max<size_t>(1, steps / 4);
  }

 private:
  static constexpr size_t kLanes = 16;

  bool in_vector_;
  size_t rows_per_group_ = 1;
};

}  // namespace quintet::opencl

#endif  // QUINTET_BACKENDS_OPENCL_ROW_LANES_H_
