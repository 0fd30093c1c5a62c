#include "backends/cpu/packed_weight.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/error.h"

namespace quintet {

namespace {

// Bytes of the file that one item of work may keep resident.
constexpr size_t kItemBytes = size_t{2} << 20;

// The columns of x * w^T that several matrices give, one part's after the other's: rows of a part,
// or columns of one that lies transposed.
class Columns {
 public:
  Columns(std::span<const HostView> parts, const PackOptions& options)
      : parts_(parts),
        transposed_(options.transposed),
        first_(static_cast<size_t>(options.first_column)) {
    for (const HostView& part : parts) {
      const int64_t all = transposed_ ? part.cols() - options.first_column : part.rows();
      ends_.push_back(size() +
                      static_cast<size_t>(options.n_columns > 0 ? options.n_columns : all));
    }
  }
  size_t size() const { return ends_.empty() ? 0 : ends_.back(); }
  size_t depth() const {
    return static_cast<size_t>(transposed_ ? parts_[0].rows() : parts_[0].cols());
  }
  DType dtype() const { return parts_[0].dtype; }
  size_t step() const { return transposed_ ? parts_[0].row_bytes() : size_of(parts_[0].dtype); }

  const std::byte* column(size_t i) const {
    const auto part =
        static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), i) - ends_.begin());
    const size_t at = i - begin_of(part);
    return transposed_ ? parts_[part].data + (first_ + at) * size_of(parts_[part].dtype)
                       : parts_[part].row(static_cast<int64_t>(at));
  }
  // Of parts that do not lie transposed: gives back columns [begin, end).
  void release(size_t begin, size_t end) const {
    for (size_t part = 0; part < parts_.size(); ++part) {
      const size_t from = std::max(begin, begin_of(part));
      const size_t to = std::min(end, ends_[part]);
      if (from >= to) continue;
      parts_[part].release_rows(static_cast<int64_t>(from - begin_of(part)),
                                static_cast<int64_t>(to - from));
    }
  }
  // Of transposed ones: gives back elements [begin, end) of every column.
  void release_depth(size_t begin, size_t end) const {
    for (const HostView& part : parts_) {
      part.release_rows(static_cast<int64_t>(begin), static_cast<int64_t>(end - begin));
    }
  }

 private:
  size_t begin_of(size_t part) const { return part == 0 ? 0 : ends_[part - 1]; }

  const std::span<const HostView> parts_;
  const bool transposed_;
  const size_t first_;
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

// Elements [k_begin, k_end) of a panel's columns, to `data` of which `w` is the view; false: a
// value does not fit.
bool pack_panel(const Columns& columns, const PanelView& w, Isa isa, size_t panel, size_t k_begin,
                size_t k_end, std::byte* data) {
  const GemmKernels& kernels = gemm_kernels(isa);
  const size_t width = w.gated ? kernels.lanes : 2 * kernels.lanes;
  PackTask task{.step = columns.step(),
                .source = columns.dtype(),
                .target = w.dtype,
                .n = k_end - k_begin,
                .panel = data + (panel * w.d_in + k_begin) * 2 * kernels.lanes * size_of(w.dtype)};
  const size_t offset = k_begin * columns.step();
  for (size_t i = 0; i < std::min(width, w.d_out - panel * width); ++i) {
    const size_t column = panel * width + i;
    task.columns[i] = columns.column(column) + offset;
    if (w.gated) task.columns[kernels.lanes + i] = columns.column(w.d_out + column) + offset;
  }
  return kernels.pack_panel(task);
}

}  // namespace

PackedWeight::PackedWeight(std::span<const HostView> parts, PackOptions options, Isa isa,
                           CpuMemory& memory, ThreadPool& pool)
    : isa_(isa), lanes_(gemm_kernels(isa).lanes) {
  assert(!parts.empty() && (!options.gated || parts.size() == 2));
  const Columns columns(parts, options);
  const size_t width = options.gated ? lanes_ : 2 * lanes_;
  view_.dtype = options.dtype;
  view_.gated = options.gated;
  view_.d_in = columns.depth();
  view_.d_out = options.gated ? columns.size() / 2 : columns.size();
  view_.n_panels = (view_.d_out + width - 1) / width;
  buffer_ = memory.allocate(view_.n_panels * view_.d_in * 2 * lanes_ * size_of(options.dtype));
  auto* data = static_cast<std::byte*>(buffer_->host());
  view_.data = data;

  // An item is a run of the file: panels, or, where it lies transposed, a part of the depth.
  const bool by_depth = options.transposed;
  const size_t n = by_depth ? view_.d_in : view_.n_panels;
  const size_t source_bytes = parts[0].row_bytes() * (by_depth ? parts.size() : 2 * lanes_);
  const size_t per_item =
      std::clamp<size_t>(kItemBytes / std::max<size_t>(1, source_bytes), 1, by_depth ? 256 : 64);
  std::atomic<bool> fits{true};
  pool.parallel_for(static_cast<int64_t>((n + per_item - 1) / per_item), [&](int64_t item) {
    const size_t begin = static_cast<size_t>(item) * per_item;
    const size_t end = std::min(begin + per_item, n);
    for (size_t panel = by_depth ? 0 : begin; panel < (by_depth ? view_.n_panels : end); ++panel) {
      if (!pack_panel(columns, view_, isa_, panel, by_depth ? begin : 0,
                      by_depth ? end : view_.d_in, data)) {
        fits = false;
      }
    }
    if (by_depth) {
      columns.release_depth(begin, end);
      return;
    }
    const size_t last = std::min(end * width, view_.d_out);
    columns.release(begin * width, last);
    if (view_.gated) columns.release(begin * width + view_.d_out, last + view_.d_out);
  });
  for (const HostView& part : parts) part.release_rows(0, part.rows());
  if (!fits) fail_overflow(parts);
}

void PackedWeight::widen_row(int64_t row, float* y) const {
  assert(!view_.gated && row >= 0 && row < d_out());
  const size_t size = size_of(view_.dtype);
  const auto column = static_cast<size_t>(row) % (2 * lanes_);
  // bfloat16 panels hold pairs, one column of either vector.
  const size_t at =
      view_.dtype == DType::kBFloat16 ? 2 * (column % lanes_) + column / lanes_ : column;
  const std::byte* panel =
      view_.data + static_cast<size_t>(row) / (2 * lanes_) * view_.d_in * 2 * lanes_ * size;
  const std::byte* from = panel + at * size;
  constexpr size_t kChunk = 256;
  std::byte chunk[kChunk * sizeof(float)];
  for (size_t k = 0; k < view_.d_in; k += kChunk) {
    const size_t n = std::min(kChunk, view_.d_in - k);
    for (size_t i = 0; i < n; ++i, from += 2 * lanes_ * size) {
      std::memcpy(chunk + i * size, from, size);
    }
    widen(chunk, view_.dtype, n, y + k);
  }
}

}  // namespace quintet
