#include "backends/opencl/panel_weight.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <vector>

#include "core/error.h"

namespace quintet::opencl {

namespace {

constexpr int64_t kPieceBytes = int64_t{2} << 20;  // of the file, on their way to the device
constexpr int64_t kSteps = 16;                     // of k that one work-item packs

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Values of the file in the dtype in which they go to the device.
class Converter {
 public:
  Converter(DType source, DType target)
      : source_(source), target_(target == DType::kFloat32 ? source : target) {}
  DType sent() const { return target_; }

  // n values, valid until the next call.
  const void* convert(const HostView& part, const std::byte* from, size_t n) {
    if (source_ == target_) return from;
    wide_.resize(n);
    bytes_.resize(n * size_of(target_));
    widen(from, source_, n, wide_.data());
    narrow(wide_.data(), n, target_, bytes_.data());
    if (target_ == DType::kFloat16) look_for_largest(part);
    return bytes_.data();
  }
  void fail_if_too_large() const {
    if (largest_ < 65520.0F) return;
    fail(ErrorKind::kFile,
         "'{}': the largest value is {}, float16 ends at 65504; use --dtype bfloat16 or float32",
         worst_->name, largest_);
  }

 private:
  void look_for_largest(const HostView& part) {
    float largest = 0.0F;
    for (const float value : wide_) {
      if (std::isfinite(value)) largest = std::max(largest, std::fabs(value));
    }
    if (largest <= largest_) return;
    largest_ = largest;
    worst_ = &part;
  }

  const DType source_;
  const DType target_;
  std::vector<float> wide_;
  std::vector<std::byte> bytes_;
  float largest_ = 0.0F;  // of the finite values
  const HostView* worst_ = nullptr;
};

// Which of the matrix's columns a part becomes.
struct Place {
  int64_t first_column = 0;
  int64_t n_columns = 0;
  int64_t padding = 0;  // columns behind the last that are zero
  cl_int group = 0;     // of a gated matrix: columns of half a panel
  cl_int half = 0;
};

class Packer {
 public:
  Packer(const PackOptions& options, const PanelWeight& weight, DType source, Session& session)
      : options_(options),
        weight_(weight),
        session_(session),
        converter_(source, options.dtype),
        kernel_(session.kernel("weights", "pack_part",
                               fmt::format("{} -D SOURCE={} -D STEPS={}", weight.defines(),
                                           number_of(converter_.sent()), kSteps))) {}

  void pack(const HostView& part, const Place& place) {
    if (options_.transposed) {
      pack_transposed(part, place);
    } else {
      pack_rows(part, place);
    }
    part.release_rows(0, part.rows());
  }
  void finish() const { converter_.fail_if_too_large(); }

 private:
  void pack_rows(const HostView& part, const Place& place) {
    const int64_t d_in = part.cols();
    const int64_t rows_of_piece = rows_per_piece(part);
    for (int64_t row = 0; row < place.n_columns; row += rows_of_piece) {
      const int64_t count = std::min(rows_of_piece, place.n_columns - row);
      Place piece = place;
      piece.first_column += row;
      piece.n_columns = count;
      if (row + count < place.n_columns) piece.padding = 0;
      send(part, row, count);
      launch(piece, 0, d_in, 1, d_in, 0);
    }
  }
  void pack_transposed(const HostView& part, const Place& place) {
    const int64_t rows_of_piece = rows_per_piece(part);
    for (int64_t k = 0; k < part.rows(); k += rows_of_piece) {
      const int64_t count = std::min(rows_of_piece, part.rows() - k);
      send(part, k, count);
      launch(place, options_.first_column, 1, part.cols(), count, k);
    }
  }

  static int64_t rows_per_piece(const HostView& part) {
    const auto row_bytes = std::max<int64_t>(1, static_cast<int64_t>(part.row_bytes()));
    return std::clamp<int64_t>(kPieceBytes / row_bytes, 1, std::max<int64_t>(1, part.rows()));
  }

  // Rows of the file to the device.
  void send(const HostView& part, int64_t row, int64_t count) {
    const auto n = static_cast<size_t>(count * part.cols());
    const size_t bytes = n * size_of(converter_.sent());
    if (bytes == 0) return;
    if (piece_() == nullptr || bytes > piece_bytes_) {
      piece_ = session_.scratch(bytes);
      piece_bytes_ = bytes;
    }
    session_.write(converter_.convert(part, part.row(row), n), piece_, 0, bytes);
    part.release_rows(row, count);
  }

  void launch(const Place& place, int64_t offset, int64_t column_step, int64_t k_step,
              int64_t steps, int64_t first_k) {
    const int64_t places = place.n_columns + place.padding;
    if (places == 0 || steps == 0) return;
    session_.launch(
        kernel_, {static_cast<size_t>(places), static_cast<size_t>(divide_up(steps, kSteps)), 1},
        {0, 0, 0}, piece_, static_cast<cl_long>(offset), static_cast<cl_long>(column_step),
        static_cast<cl_long>(k_step), weight_.memory(), static_cast<cl_long>(place.first_column),
        static_cast<cl_long>(place.n_columns), static_cast<cl_long>(places), place.group,
        place.half, static_cast<cl_long>(first_k), static_cast<cl_long>(first_k + steps),
        static_cast<cl_long>(weight_.d_in()));
  }

  const PackOptions& options_;
  const PanelWeight& weight_;
  Session& session_;
  Converter converter_;
  cl::Kernel& kernel_;
  cl::Buffer piece_;
  size_t piece_bytes_ = 0;
};

int64_t columns_of(const HostView& part, const PackOptions& options) {
  if (!options.transposed) return part.rows();
  return options.n_columns > 0 ? options.n_columns : part.cols() - options.first_column;
}

}  // namespace

int number_of(DType dtype) {
  if (dtype == DType::kBFloat16) return 1;
  return dtype == DType::kFloat16 ? 2 : 0;
}

std::string PanelWeight::defines() const {
  return fmt::format("-D WIDTH={} -D STORED={}", shape_.width, number_of(dtype_));
}

PanelWeight::PanelWeight(std::span<const HostView> parts, PackOptions options, const void* owner,
                         Session& session)
    : owner_(owner),
      shape_(panel_shape(session.limits())),
      dtype_(options.dtype),
      gated_(options.gated) {
  assert(!parts.empty() && (!gated_ || parts.size() == 2));
  int64_t columns = 0;
  for (const HostView& part : parts) columns += columns_of(part, options);
  d_in_ = options.transposed ? parts[0].rows() : parts[0].cols();
  d_out_ = gated_ ? columns / 2 : columns;
  const int width = gated_ ? shape_.width / 2 : shape_.width;
  n_panels_ = divide_up(d_out_, width);
  buffer_ =
      session.allocate(static_cast<size_t>(n_panels_ * d_in_ * shape_.width) * size_of(dtype_),
                       fmt::format("a weight [{}, {}] in {}", columns, d_in_, name_of(dtype_)));

  Packer packer(options, *this, parts[0].dtype, session);
  const int64_t padding = n_panels_ * width - d_out_;
  Place place;
  for (size_t i = 0; i < parts.size(); ++i) {
    place.n_columns = columns_of(parts[i], options);
    if (gated_) {
      place = {.n_columns = place.n_columns,
               .padding = padding,
               .group = width,
               .half = static_cast<cl_int>(i)};
    } else {
      place.padding = i + 1 == parts.size() ? padding : 0;
    }
    packer.pack(parts[i], place);
    place.first_column += place.n_columns;
  }
  packer.finish();
}

}  // namespace quintet::opencl
