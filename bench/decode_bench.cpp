// Products with few rows, as decoding does them: bytes of weights per second of a CPU device
// against a plain read of as many bytes by the same threads, taken in turns. The weights are many
// copies of one matrix, gone through in turn, so that none is found in a cache. With more than one
// core leave the machine alone meanwhile. The more rows, the more the rate of a product of 512 rows
// counts.
//
//   quintet_decode_bench [--cores N,N,...] [--turns N] [--rows M,M,...] [--mib N]
//                        [--isa avx2|avx512] [--dtype NAME] [NAME...]
//
// NAME picks shapes whose name contains it ("GPT-2").
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/cpu/cpu_device.h"
#include "backends/cpu/thread_pool.h"
#include "bench_support.h"

using namespace quintet;

namespace {

struct Shape {
  const char* name;
  int64_t d_in;
  int64_t d_out;
  bool gated = false;
};

constexpr Shape kShapes[] = {
    {"GPT-2 qkv", 768, 2304},   {"GPT-2 fc", 768, 3072},      {"GPT-2 proj", 3072, 768},
    {"GPT-2 head", 768, 50257}, {"T5-base o", 768, 768},      {"T5-base wi", 768, 2048, true},
    {"T5-base wo", 2048, 768},  {"T5-base head", 768, 32128},
};

struct Options {
  std::vector<int64_t> cores = {0};
  std::vector<int64_t> rows = {1, 2, 4, 8, 16, 32};
  int turns = 5;
  size_t mib = 768;
  std::optional<Isa> isa;
  std::optional<DType> dtype;
  std::vector<std::string> names;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    const auto value = [&] { return std::string(i + 1 < argc ? argv[++i] : ""); };
    if (arg == "--cores") {
      options.cores = numbers_in(value());
    } else if (arg == "--rows") {
      options.rows = numbers_in(value());
    } else if (arg == "--turns") {
      options.turns = std::stoi(value());
    } else if (arg == "--mib") {
      options.mib = std::stoul(value());
    } else if (arg == "--isa") {
      options.isa = value() == "avx2" ? Isa::kAvx2 : Isa::kAvx512;
    } else if (arg == "--dtype") {
      options.dtype = dtype_from_name(value());
    } else {
      options.names.push_back(arg);
    }
  }
  return options;
}

using Words = uint64_t __attribute__((vector_size(32)));

__attribute__((target("avx2"))) uint64_t read_all(const std::byte* from, size_t bytes) {
  const auto* words = reinterpret_cast<const Words*>(from);
  Words sums[8] = {};
  for (size_t i = 0; i + 8 <= bytes / sizeof(Words); i += 8) {
    for (size_t j = 0; j < 8; ++j) sums[j] |= words[i + j];
  }
  for (size_t j = 1; j < 8; ++j) sums[0] |= sums[j];
  return sums[0][0] | sums[0][1] | sums[0][2] | sums[0][3];
}

// Of one thread the time that it has computed, so that what other programs take of the core does
// not count; of several the wall clock's.
double seconds_of(const std::function<void()>& work, int threads) {
  const auto now = [&] {
    struct timespec time {};
    ::clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  const double start = now();
  work();
  return now() - start;
}

// A read of everything in `memory`, each thread a contiguous part of it.
void read_on(ThreadPool& pool, const Tensor& memory) {
  const auto* from = reinterpret_cast<const std::byte*>(memory.row<float>(0));
  const auto n = static_cast<size_t>(pool.threads());
  const size_t share = static_cast<size_t>(memory.cols()) * sizeof(float) / n / 256 * 256;
  pool.parallel_for(pool.threads(), [&](int64_t i) {
    volatile uint64_t sum = read_all(from + static_cast<size_t>(i) * share, share);
    static_cast<void>(sum);
  });
}

// GFLOP/s of a product of 512 rows.
double many_rows_rate(CpuDevice& device, const Weight& w, const Tensor& x, const Tensor& y,
                      double gflop) {
  std::vector<double> times(5);
  for (double& time : times) {
    time = seconds_of([&] { device.linear(x, w, {}, y); }, device.threads());
  }
  return gflop / median(times);
}

void race(CpuDevice& device, ThreadPool& pool, const Tensor& memory, const Shape& shape,
          DType dtype, const Options& options) {
  const int64_t d_all = shape.gated ? 2 * shape.d_out : shape.d_out;
  const auto values = numbers(static_cast<size_t>(shape.d_in * shape.d_out));
  const HostView half{.name = "w",
                      .data = reinterpret_cast<const std::byte*>(values.data()),
                      .dtype = DType::kFloat32,
                      .shape = {shape.d_out, shape.d_in}};
  const std::vector<HostView> parts(shape.gated ? 2 : 1, half);
  const size_t bytes = static_cast<size_t>(shape.d_in * d_all) * size_of(dtype);
  std::vector<std::unique_ptr<Weight>> copies;
  for (size_t i = 0; i < std::max<size_t>(2, (options.mib << 20) / bytes); ++i) {
    copies.push_back(device.pack(parts, {.dtype = dtype, .gated = shape.gated}));
  }
  constexpr int64_t kMany = 512;
  const Tensor x = device.allocate(kMany, shape.d_in);
  device.upload(numbers(static_cast<size_t>(kMany * shape.d_in)).data(), x);
  const Tensor y = device.allocate(kMany, shape.d_out);
  const double gflop = 2e-9 * static_cast<double>(shape.d_in * d_all);
  std::vector<double> reads;
  std::vector<std::vector<double>> times(options.rows.size());
  for (int turn = 0; turn < options.turns; ++turn) {
    reads.push_back(seconds_of([&] { read_on(pool, memory); }, device.threads()));
    for (size_t i = 0; i < options.rows.size(); ++i) {
      const int64_t rows = options.rows[i];
      const auto all = [&] {
        for (const auto& w : copies) device.linear(x.rows(0, rows), *w, {}, y.rows(0, rows));
      };
      times[i].push_back(seconds_of(all, device.threads()) / static_cast<double>(copies.size()));
    }
  }
  const double read_rate =
      1e-9 * static_cast<double>(memory.cols()) * sizeof(float) / median(reads);
  const double peak = many_rows_rate(device, *copies[0], x, y, gflop * kMany);
  fmt::print("{:13} {:9} read {:5.1f} GB/s, 512 rows {:6.1f} GFLOP/s\n", shape.name, name_of(dtype),
             read_rate, peak);
  for (size_t i = 0; i < options.rows.size(); ++i) {
    const double time = median(times[i]);
    const double rate = 1e-9 * static_cast<double>(bytes) / time;
    const double product = gflop * static_cast<double>(options.rows[i]) / time;
    fmt::print("  {:3} rows {:8.1f} us {:6.1f} GB/s = {:.2f} {:7.1f} GFLOP/s = {:.2f}\n",
               options.rows[i], 1e6 * time, rate, rate / read_rate, product, product / peak);
  }
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  const std::vector<int> cores(options.cores.begin(), options.cores.end());
  const auto lending = std::make_shared<CoreLending>();
  CpuDevice device({.name = "cpu",
                    .cores = cores,
                    .threads = static_cast<int>(cores.size()),
                    .isa = options.isa,
                    .lending = lending});
  device.attach_thread();
  ThreadPool pool(cores, static_cast<int>(cores.size()), std::make_shared<CoreLending>());
  const Tensor memory = device.allocate(1, static_cast<int64_t>(options.mib << 18));
  std::fill_n(memory.row<float>(0), memory.cols(), 1.0F);
  fmt::print("{} threads, {}\n", cores.size(), name_of(device.isa()));
  for (const Shape& shape : kShapes) {
    const std::string name = shape.name;
    const bool chosen =
        options.names.empty() ||
        std::any_of(options.names.begin(), options.names.end(),
                    [&](const auto& part) { return name.find(part) != std::string::npos; });
    if (!chosen) continue;
    for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
      if (options.dtype && *options.dtype != dtype) continue;
      race(device, pool, memory, shape, dtype, options);
      device.empty_cache();
    }
  }
}
