// Matrix products of an OpenCL device against CLBlast's sgemm on the same device and against one
// core of the CPU backend: the layer shapes of the T5 family, float32, bfloat16 and float16
// weights. All contestants run in one process and take turns, so that what else the machine does
// hits them alike; a ratio is the median over the turns. Time is what all threads of this process
// computed, so on a device that is a processor the rates are of one core.
//
//   quintet_opencl_bench [--device NAME] [--turns N] [--rows M,M,...] [--wall] [--no-clblast]
//   [SHAPE...]
//
// SHAPE picks shapes whose name contains it ("ProtT5"); --wall takes the time on the wall, for
// devices that are no processors; QUINTET_OPENCL_PRODUCTS=tiled takes the kernel of small
// work-items.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/cpu/cpu_device.h"
#include "backends/opencl/opencl_device.h"
#include "backends/opencl/platforms.h"
#include "backends/opencl/queue_session.h"
#include "bench_support.h"
#ifdef QUINTET_HAS_CLBLAST
#include <clblast.h>  // after opencl.h, which says what version of the headers is meant
#endif

using namespace quintet;

namespace {

struct Shape {
  const char* name;
  int64_t d_in;
  int64_t d_out;
};

constexpr Shape kShapes[] = {
    {"T5-small qkv", 512, 1536}, {"T5-small o", 512, 512},    {"T5-small wi", 512, 2048},
    {"T5-small wo", 2048, 512},  {"ProtT5 qkv", 1024, 12288}, {"ProtT5 o", 4096, 1024},
    {"ProtT5 wi", 1024, 16384},  {"ProtT5 wo", 16384, 1024},
};

struct Options {
  std::string device = "opencl:0";
  int turns = 5;
  std::vector<int64_t> rows = {1, 8, 32, 64, 512};
  bool wall = false;
  bool clblast = true;
  std::vector<std::string> names;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    const auto value = [&] { return std::string(i + 1 < argc ? argv[++i] : ""); };
    if (arg == "--device") {
      options.device = value();
    } else if (arg == "--turns") {
      options.turns = std::stoi(value());
    } else if (arg == "--wall") {
      options.wall = true;
    } else if (arg == "--no-clblast") {
      options.clblast = false;
    } else if (arg == "--rows") {
      options.rows = numbers_in(value());
    } else {
      options.names.push_back(arg);
    }
  }
  return options;
}

double seconds(bool wall) {
  struct timespec now {};
  ::clock_gettime(wall ? CLOCK_MONOTONIC : CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Takes turns; [contestant][turn] seconds. Each repeats its work for as long as pays.
std::vector<std::vector<double>> race(const std::vector<std::function<void(int)>>& contestants,
                                      const Options& options) {
  const auto time_of = [&](const auto& contestant, int repeats) {
    const double start = seconds(options.wall);
    contestant(repeats);
    return (seconds(options.wall) - start) / repeats;
  };
  std::vector<int> repeats;
  for (const auto& contestant : contestants) {
    contestant(1);
    repeats.push_back(std::clamp(static_cast<int>(0.05 / time_of(contestant, 1)), 1, 2000));
  }
  std::vector<std::vector<double>> times(contestants.size());
  for (int turn = 0; turn < options.turns; ++turn) {
    for (size_t i = 0; i < contestants.size(); ++i) {
      times[i].push_back(time_of(contestants[i], repeats[i]));
    }
  }
  return times;
}

double ratio(const std::vector<double>& yardstick, const std::vector<double>& ours) {
  std::vector<double> ratios;
  for (size_t i = 0; i < ours.size(); ++i) ratios.push_back(yardstick[i] / ours[i]);
  return median(ratios);
}

// CLBlast's product of the same numbers in the device's memory, through a queue of its own.
class Clblast {
 public:
  Clblast(const opencl::QueueSession& session, const cl::Device& device)
      : context_(session.context()), queue_(context_, device) {}

  std::function<void(int)> product(const std::vector<float>& x, const std::vector<float>& w,
                                   int64_t rows, const Shape& shape) {
    const cl::Buffer x_memory = put(x);
    const cl::Buffer w_memory = put(w);
    const cl::Buffer y_memory(context_, CL_MEM_READ_WRITE,
                              static_cast<size_t>(rows * shape.d_out) * sizeof(float));
    return [=, queue = queue_](int repeats) {
      for (int i = 0; i < repeats; ++i) multiply(queue, x_memory, w_memory, y_memory, rows, shape);
      queue.finish();
    };
  }

 private:
  cl::Buffer put(const std::vector<float>& values) {
    const size_t bytes = values.size() * sizeof(float);
    cl::Buffer memory(context_, CL_MEM_READ_WRITE, bytes);
    queue_.enqueueWriteBuffer(memory, CL_TRUE, 0, bytes, values.data());
    return memory;
  }
#ifdef QUINTET_HAS_CLBLAST
  static void multiply(const cl::CommandQueue& queue, const cl::Buffer& x, const cl::Buffer& w,
                       const cl::Buffer& y, int64_t rows, const Shape& shape) {
    const auto m = static_cast<size_t>(rows);
    const auto n = static_cast<size_t>(shape.d_out);
    const auto k = static_cast<size_t>(shape.d_in);
    cl_command_queue raw = queue();
    const auto status = clblast::Gemm<float>(clblast::Layout::kRowMajor, clblast::Transpose::kNo,
                                             clblast::Transpose::kYes, m, n, k, 1.0F, x(), 0, k,
                                             w(), 0, k, 0.0F, y(), 0, n, &raw);
    if (status != clblast::StatusCode::kSuccess) {
      fmt::print(stderr, "CLBlast: status {}\n", static_cast<int>(status));
      std::exit(1);
    }
  }
#else
  static void multiply(const cl::CommandQueue& /*queue*/, const cl::Buffer& /*x*/,
                       const cl::Buffer& /*w*/, const cl::Buffer& /*y*/, int64_t /*rows*/,
                       const Shape& /*shape*/) {}
#endif

  const cl::Context context_;
  const cl::CommandQueue queue_;
};

class Bench {
 public:
  Bench(const opencl::FoundDevice& found, const Options& options)
      : options_(options),
        session_(new opencl::QueueSession(found)),
        clblast_(*session_, found.device),
        opencl_(std::unique_ptr<opencl::QueueSession>(session_)),
        cpu_({.name = "cpu", .cores = {}, .threads = 1, .isa = {}, .lending = nullptr}) {}

  void race_shape(const Shape& shape) {
    const auto w = numbers(static_cast<size_t>(shape.d_out * shape.d_in));
    for (const int64_t rows : options_.rows) {
      const auto x = numbers(static_cast<size_t>(rows * shape.d_in));
      std::vector<std::function<void(int)>> contestants = {
          product(cpu_, x, w, rows, shape, DType::kFloat32),
          product(opencl_, x, w, rows, shape, DType::kFloat32),
          product(opencl_, x, w, rows, shape, DType::kBFloat16),
          product(opencl_, x, w, rows, shape, DType::kFloat16)};
      if (options_.clblast) contestants.push_back(clblast_.product(x, w, rows, shape));
      print(shape, rows, race(contestants, options_));
    }
  }

 private:
  static std::function<void(int)> product(Device& device, const std::vector<float>& x,
                                          const std::vector<float>& w, int64_t rows,
                                          const Shape& shape, DType dtype) {
    const HostView view{.name = "w",
                        .data = reinterpret_cast<const std::byte*>(w.data()),
                        .dtype = DType::kFloat32,
                        .shape = {shape.d_out, shape.d_in}};
    const std::shared_ptr<Weight> weight = device.pack({&view, 1}, {.dtype = dtype});
    const Tensor from = device.allocate(rows, shape.d_in);
    device.upload(x.data(), from);
    const Tensor to = device.allocate(rows, shape.d_out);
    return [&device, weight, from, to](int repeats) {
      for (int i = 0; i < repeats; ++i) device.linear(from, *weight, {}, to);
      device.wait();
    };
  }
  void print(const Shape& shape, int64_t rows,
             const std::vector<std::vector<double>>& times) const {
    const double gflop = 2e-9 * static_cast<double>(rows * shape.d_out * shape.d_in);
    fmt::print("{:13} {:6} {:6} {:4}", shape.name, shape.d_in, shape.d_out, rows);
    for (size_t i = 0; i < 4; ++i) fmt::print(" {:7.1f}", gflop / median(times[i]));
    if (options_.clblast) fmt::print(" {:7.1f}", gflop / median(times[4]));
    fmt::print(" {:7.2f} {:7.2f} {:7.2f}", ratio(times[0], times[1]), ratio(times[1], times[2]),
               ratio(times[1], times[3]));
    if (options_.clblast) fmt::print(" {:9.1f}", ratio(times[4], times[1]));
    fmt::print("\n");
    std::fflush(stdout);
  }

  const Options& options_;
  opencl::QueueSession* const session_;  // of opencl_
  Clblast clblast_;
  opencl::OpenclDevice opencl_;
  CpuDevice cpu_;
};

}  // namespace

int main(int argc, char** argv) {
  Options options = parse(argc, argv);
#ifndef QUINTET_HAS_CLBLAST
  options.clblast = false;
#endif
  const auto found = opencl::find_devices(options.device);
  fmt::print("{}, {}\n", found.front().info.name, options.wall ? "wall time" : "processor time");
  fmt::print("{:13} {:>6} {:>6} {:>4} {:>7} {:>7} {:>7} {:>7}{} {:>7} {:>7} {:>7}{}\n", "GFLOP/s",
             "d_in", "d_out", "rows", "cpu", "f32", "bf16", "f16",
             options.clblast ? " CLBlast" : "", "f32/cpu", "bf16 x", "f16 x",
             options.clblast ? " f32/CLBl." : "");
  Bench bench(found.front(), options);
  for (const Shape& shape : kShapes) {
    const bool chosen =
        options.names.empty() ||
        std::any_of(options.names.begin(), options.names.end(), [&](const std::string& part) {
          return std::string(shape.name).find(part) != std::string::npos;
        });
    if (chosen) bench.race_shape(shape);
  }
}
