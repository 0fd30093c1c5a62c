#include "backends/cpu/packed_weight.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/error.h"

namespace quintet {

namespace {

// Bytes of the file that one item of work may keep resident.
constexpr size_t kItemBytes = size_t{2} << 20;

// Rows of several matrices, one below the other.
class Rows {
 public:
  explicit Rows(std::span<const HostView> parts) : parts_(parts) {
    for (const HostView& part : parts) ends_.push_back(size() + static_cast<size_t>(part.rows()));
  }
  size_t size() const { return ends_.empty() ? 0 : ends_.back(); }

  const std::byte* row(size_t i) const {
    const size_t part = part_of(i);
    return parts_[part].row(static_cast<int64_t>(i - begin_of(part)));
  }
  void release(size_t begin, size_t end) const {
    for (size_t part = 0; part < parts_.size(); ++part) {
      const size_t from = std::max(begin, begin_of(part));
      const size_t to = std::min(end, ends_[part]);
      if (from >= to) continue;
      parts_[part].release_rows(static_cast<int64_t>(from - begin_of(part)),
                                static_cast<int64_t>(to - from));
    }
  }
  const HostView& part(size_t row) const { return parts_[part_of(row)]; }

 private:
  size_t begin_of(size_t part) const { return part == 0 ? 0 : ends_[part - 1]; }
  size_t part_of(size_t row) const {
    return static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), row) - ends_.begin());
  }

  std::span<const HostView> parts_;
  std::vector<size_t> ends_;
};

[[noreturn]] void fail_overflow(std::span<const HostView> parts) {
  const HostView* worst = &parts[0];
  float largest = 0.0F;
  for (const HostView& part : parts) {
    std::vector<float> row(static_cast<size_t>(part.cols()));
    for (int64_t i = 0; i < part.rows(); ++i) {
      widen(part.row(i), part.dtype, row.size(), row.data());
      part.release_rows(i, 1);
      for (const float value : row) {
        if (std::isfinite(value) && std::fabs(value) > largest) {
          largest = std::fabs(value);
          worst = &part;
        }
      }
    }
  }
  fail(ErrorKind::kFile,
       "'{}': the largest value is {}, float16 ends at 65504; use --dtype bfloat16 or float32",
       worst->name, largest);
}

}  // namespace

PackedWeight::PackedWeight(std::span<const HostView> parts, PackOptions options, Isa isa,
                           CpuMemory& memory, ThreadPool& pool)
    : isa_(isa) {
  assert(!parts.empty() && (!options.gated || parts.size() == 2));
  const GemmKernels& kernels = gemm_kernels(isa);
  const Rows rows(parts);
  const size_t lanes = kernels.lanes;
  view_.dtype = options.dtype;
  view_.gated = options.gated;
  view_.d_in = static_cast<size_t>(parts[0].cols());
  view_.d_out = options.gated ? rows.size() / 2 : rows.size();
  const size_t width = options.gated ? lanes : 2 * lanes;
  view_.n_panels = (view_.d_out + width - 1) / width;
  const size_t panel_bytes = view_.d_in * 2 * lanes * size_of(options.dtype);
  buffer_ = memory.allocate(view_.n_panels * panel_bytes);
  auto* data = static_cast<std::byte*>(buffer_->host());
  view_.data = data;

  const size_t second = options.gated ? view_.d_out : lanes;  // from the first vector's rows
  const size_t source_bytes = std::max<size_t>(1, 2 * lanes * parts[0].row_bytes());
  const size_t per_item = std::clamp<size_t>(kItemBytes / source_bytes, 1, 64);
  const size_t n_items = (view_.n_panels + per_item - 1) / per_item;
  std::atomic<bool> fits{true};
  pool.parallel_for(static_cast<int64_t>(n_items), [&](int64_t item) {
    const size_t begin = static_cast<size_t>(item) * per_item;
    const size_t end = std::min(begin + per_item, view_.n_panels);
    for (size_t panel = begin; panel < end; ++panel) {
      PackTask task{.source = parts[0].dtype,
                    .target = options.dtype,
                    .d_in = view_.d_in,
                    .panel = data + panel * panel_bytes};
      for (size_t i = 0; i < width; ++i) {
        const size_t column = panel * width + i;
        if (column >= view_.d_out) break;
        task.rows[i] = rows.row(column);
        if (options.gated) task.rows[lanes + i] = rows.row(column + second);
      }
      if (!kernels.pack_panel(task)) fits = false;
    }
    const size_t first = begin * width;
    const size_t last = std::min(end * width, view_.d_out);
    rows.release(first, last);
    if (options.gated) rows.release(first + second, last + second);
  });
  for (const HostView& part : parts) part.release_rows(0, part.rows());
  if (!fits) fail_overflow(parts);
}

}  // namespace quintet
