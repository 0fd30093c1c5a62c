// Products: weights into panels, and rows times panels by the kernel that fits the device.
#include <fmt/format.h>

#include <cassert>

#include "backends/opencl/opencl_device.h"
#include "backends/opencl/panel_weight.h"
#include "backends/opencl/product_shape.h"
#include "backends/opencl/queue_session.h"

namespace quintet::opencl {

namespace {

// Flags of the kernels.
constexpr cl_int kHasAffine = 1;
constexpr cl_int kHasBias = 2;
constexpr cl_int kAccumulates = 4;

size_t groups(int64_t n, int64_t of_group) {
  return static_cast<size_t>((n + of_group - 1) / of_group);
}

class Product {
 public:
  Product(const Tensor& x, const PanelWeight& w, const Epilogue& epilogue, const Tensor& y,
          Session& session)
      : x_(x),
        w_(w),
        epilogue_(epilogue),
        y_(y),
        session_(session),
        size_{.rows = x.rows(),
              .d_in = w.d_in(),
              .n_panels = w.n_panels(),
              .narrow = w.dtype() != DType::kFloat32},
        flags_((epilogue.bias.empty() && epilogue.scale == 1.0F ? 0 : kHasAffine) |
               (epilogue.bias.empty() ? 0 : kHasBias) | (epilogue.accumulate ? kAccumulates : 0)) {}

  void enqueue() {
    if (w_.shape().lanes > 0) {
      enqueue_wide();
    } else {
      enqueue_tiled();
    }
  }

 private:
  std::string defines() const {
    return fmt::format(" -D STORED={} -D GATED={} -D ACTIVATION={}", number_of(w_.dtype()),
                       w_.gated() ? 1 : 0, static_cast<int>(epilogue_.activation));
  }
  template <typename... More>
  void launch(cl::Kernel& kernel, Session::Range global, Session::Range local,
              const More&... more) {
    const Tensor& bias = epilogue_.bias.empty() ? x_ : epilogue_.bias;
    session_.launch(kernel, global, local, w_.memory(), MatrixArg(x_), MatrixArg(bias),
                    MatrixArg(y_), epilogue_.scale, flags_, static_cast<cl_int>(size_.rows),
                    static_cast<cl_int>(size_.d_in), static_cast<cl_int>(w_.d_out()), more...);
  }

  void enqueue_wide() {
    const WideTiles tiles = wide_tiles(size_, w_.shape(), session_.limits());
    cl::Kernel& kernel = session_.kernel(
        "linear_wide", "linear_wide",
        fmt::format("-D LANES={} {}", w_.shape().lanes, tiles.defines()) + defines());
    launch(kernel,
           {groups(size_.n_panels, tiles.block_panels), groups(size_.rows, tiles.block_rows), 1},
           {1, 1, 1}, cl_int{tiles.block_rows}, cl_int{tiles.block_panels}, cl_int{tiles.depth});
  }

  void enqueue_tiled() {
    const GroupTiles tiles = group_tiles(size_, w_.shape(), session_.limits());
    cl::Kernel& kernel = session_.kernel(
        "linear", "linear_tiled",
        fmt::format("-D WIDTH={} {}", w_.shape().width, tiles.defines()) + defines());
    const auto cols = static_cast<size_t>(tiles.group_cols);
    const auto rows = static_cast<size_t>(tiles.group_rows);
    launch(kernel,
           {groups(size_.n_panels, tiles.panels) * cols,
            groups(size_.rows, tiles.group_rows * tiles.tile_rows) * rows, 1},
           {cols, rows, 1});
  }

  const Tensor& x_;
  const PanelWeight& w_;
  const Epilogue& epilogue_;
  const Tensor& y_;
  Session& session_;
  const ProductSize size_;
  const cl_int flags_;
};

}  // namespace

std::unique_ptr<Weight> OpenclDevice::pack(std::span<const HostView> parts, PackOptions options) {
  return std::make_unique<PanelWeight>(parts, options, this, *session_);
}

void OpenclDevice::weight_rows(std::span<const int32_t> ids, const Weight& w, const Tensor& y) {
  assert(static_cast<int64_t>(ids.size()) == y.rows() && w.d_in() == y.cols() && !w.gated());
  if (y.empty()) return;
  const auto& packed = dynamic_cast<const PanelWeight&>(w);
  cl::Kernel& kernel = session_->kernel("weights", "weight_rows", packed.defines());
  session_->launch(kernel, {static_cast<size_t>(w.d_in()), ids.size(), 1}, {0, 0, 0},
                   session_->stage(ids), packed.memory(), static_cast<cl_long>(w.d_in()),
                   MatrixArg(y));
}

void OpenclDevice::linear(const Tensor& x, const Weight& w, const Epilogue& epilogue,
                          const Tensor& y) {
  const auto& packed = dynamic_cast<const PanelWeight&>(w);
  assert(x.cols() == w.d_in() && y.cols() == w.d_out() && x.rows() == y.rows());
  assert(epilogue.bias.empty() || (!w.gated() && epilogue.bias.cols() == w.d_out()));
  if (y.empty()) return;
  Product(x, packed, epilogue, y, *session_).enqueue();
}

}  // namespace quintet::opencl
