// Matrix products and attention of one CPU core against OpenBLAS sgemm on the same core: the layer
// shapes of the T5 family, f32 and bf16 weights. All contestants run in one process and take turns,
// so that what else the machine does hits them alike; a ratio is the median over the turns. On a
// processor that OpenBLAS does not know it takes its oldest kernels ("Prescott"): the fair
// yardstick is then the fastest that runs, say OPENBLAS_CORETYPE=SkylakeX.
//
//   quintet_gemm_bench [--core N] [--turns N] [--rows M,M,...] [--isa avx2|avx512] [NAME...]
//
// NAME picks shapes whose name contains it ("ProtT5"), or "attention".
#include <cblas.h>
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "backends/cpu/cpu_device.h"
#include "bench_support.h"

using namespace quintet;

namespace {

struct Shape {
  const char* name;
  int64_t d_in;
  int64_t d_out;
};

constexpr Shape kShapes[] = {
    {"T5-small qkv", 512, 512},  {"T5-small wi", 512, 2048},  {"T5-small wo", 2048, 512},
    {"base qkv", 768, 768},      {"base wi", 768, 2048},      {"base wo", 2048, 768},
    {"base relu wi", 768, 3072}, {"base relu wo", 3072, 768}, {"ProtT5 qkv", 1024, 4096},
    {"ProtT5 o", 4096, 1024},    {"ProtT5 wi", 1024, 16384},  {"ProtT5 wo", 16384, 1024},
    {"XXL qkv", 4096, 4096},     {"XXL wi", 4096, 10240},     {"XXL wo", 10240, 4096},
};

struct Options {
  int core = 0;
  int turns = 7;
  std::vector<int64_t> rows = {64, 128, 256, 512, 1024, 2048};
  std::optional<Isa> isa;
  std::vector<std::string> names;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    const auto value = [&] { return std::string(i + 1 < argc ? argv[++i] : ""); };
    if (arg == "--core") {
      options.core = std::stoi(value());
    } else if (arg == "--turns") {
      options.turns = std::stoi(value());
    } else if (arg == "--isa") {
      options.isa = value() == "avx2" ? Isa::kAvx2 : Isa::kAvx512;
    } else if (arg == "--rows") {
      options.rows = numbers_in(value());
    } else {
      options.names.push_back(arg);
    }
  }
  return options;
}

// Time that this thread has computed: what other programs take of the core does not count.
double thread_seconds() {
  struct timespec now {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double seconds_of(const std::function<void()>& work, int repeats) {
  const double start = thread_seconds();
  for (int i = 0; i < repeats; ++i) work();
  return (thread_seconds() - start) / repeats;
}

// Takes turns; [contestant][turn] seconds.
std::vector<std::vector<double>> race(const std::vector<std::function<void()>>& contestants,
                                      int turns) {
  std::vector<std::vector<double>> times(contestants.size());
  const double once = std::min(seconds_of(contestants[0], 1), seconds_of(contestants[0], 1));
  const int repeats = std::max(1, static_cast<int>(0.02 / once));
  for (const auto& contestant : contestants) contestant();
  for (int turn = 0; turn < turns; ++turn) {
    for (size_t i = 0; i < contestants.size(); ++i) {
      times[i].push_back(seconds_of(contestants[i], repeats));
    }
  }
  return times;
}

double ratio(const std::vector<double>& yardstick, const std::vector<double>& ours) {
  std::vector<double> ratios;
  for (size_t i = 0; i < ours.size(); ++i) ratios.push_back(yardstick[i] / ours[i]);
  return median(ratios);
}

void race_linear(CpuDevice& device, const Shape& shape, const Options& options, double& worst_small,
                 double& worst_large) {
  const auto w = numbers(static_cast<size_t>(shape.d_out * shape.d_in));
  const HostView view{.name = "w",
                      .data = reinterpret_cast<const std::byte*>(w.data()),
                      .dtype = DType::kFloat32,
                      .shape = {shape.d_out, shape.d_in}};
  const auto f32 = device.pack({&view, 1}, {DType::kFloat32});
  const auto bf16 = device.pack({&view, 1}, {DType::kBFloat16});
  for (const int64_t rows : options.rows) {
    const auto host_x = numbers(static_cast<size_t>(rows * shape.d_in));
    std::vector<float> host_y(static_cast<size_t>(rows * shape.d_out));
    const Tensor x = device.allocate(rows, shape.d_in);
    device.upload(host_x.data(), x);
    const Tensor y = device.allocate(rows, shape.d_out);
    const auto times =
        race({[&] {
                cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, static_cast<int>(rows),
                            static_cast<int>(shape.d_out), static_cast<int>(shape.d_in), 1.0F,
                            host_x.data(), static_cast<int>(shape.d_in), w.data(),
                            static_cast<int>(shape.d_in), 0.0F, host_y.data(),
                            static_cast<int>(shape.d_out));
              },
              [&] { device.linear(x, *f32, {}, y); }, [&] { device.linear(x, *bf16, {}, y); }},
             options.turns);
    const double gflop = 2e-9 * static_cast<double>(rows * shape.d_out * shape.d_in);
    const double f32_ratio = ratio(times[0], times[1]);
    const double bf16_ratio = ratio(times[0], times[2]);
    double& worst = rows >= 256 ? worst_large : worst_small;
    worst = std::min({worst, f32_ratio, bf16_ratio});
    fmt::print("{:13} {:6} {:6} {:5} {:9.1f} {:7.1f} {:7.1f} {:7.2f} {:6.2f}{}\n", shape.name,
               shape.d_in, shape.d_out, rows, gflop / median(times[0]), gflop / median(times[1]),
               gflop / median(times[2]), f32_ratio, bf16_ratio,
               std::min(f32_ratio, bf16_ratio) < (rows >= 256 ? 0.95 : 0.85) ? "  below" : "");
    std::fflush(stdout);
  }
}

// One sequence of `n` tokens against the rate of a square-ish product on the same core.
void race_attention(CpuDevice& device, int64_t n, int64_t n_heads, int64_t d_kv, int turns) {
  const int64_t width = n_heads * d_kv;
  const auto host = numbers(static_cast<size_t>(n * width));
  const auto put = [&] {
    Tensor t = device.allocate(n, width);
    device.upload(host.data(), t);
    return t;
  };
  const Tensor q = put();
  const Tensor k = put();
  const Tensor v = put();
  const Tensor y = device.allocate(n, width);
  const Tensor bias = device.allocate(n_heads, 2 * n - 1);
  device.upload(numbers(static_cast<size_t>(n_heads * (2 * n - 1))).data(), bias);
  MicroBatch batch;
  for (int64_t i = 0; i < n; ++i) batch.positions.push_back(static_cast<int32_t>(i));
  batch.tokens.resize(static_cast<size_t>(n));
  batch.cu_seqlens = {0, static_cast<int32_t>(n)};
  batch.ordinals = {0};
  batch.max_len = static_cast<int32_t>(n);
  constexpr int64_t kRows = 512;
  constexpr int64_t kDim = 1024;
  const auto w = numbers(kDim * kDim);
  const HostView view{.name = "w",
                      .data = reinterpret_cast<const std::byte*>(w.data()),
                      .dtype = DType::kFloat32,
                      .shape = {kDim, kDim}};
  const auto weight = device.pack({&view, 1}, {DType::kFloat32});
  const Tensor x = device.allocate(kRows, kDim);
  device.upload(numbers(kRows * kDim).data(), x);
  const Tensor out = device.allocate(kRows, kDim);
  const int64_t rows = std::min<int64_t>(n, 1024);
  const auto times = race({[&] {
                             device.attention(q.rows(0, rows), k, v, bias, batch, 0,
                                              {.n_heads = n_heads, .d_kv = d_kv}, y.rows(0, rows));
                           },
                           [&] { device.linear(x, *weight, {}, out); }},
                          turns);
  const double attention = 4e-9 * static_cast<double>(rows * n * width) / median(times[0]);
  const double product = 2e-9 * static_cast<double>(kRows * kDim * kDim) / median(times[1]);
  fmt::print(
      "attention {:5} tokens, {:2} heads of {:3}: {:6.1f} GFLOP/s, {:.2f} of a product's {:.1f}\n",
      n, n_heads, d_kv, attention, attention / product, product);
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  openblas_set_num_threads(1);
  CpuDevice device({.name = "cpu",
                    .cores = {options.core},
                    .threads = 1,
                    .isa = options.isa,
                    .lending = nullptr});
  device.attach_thread();
  const char* forced = std::getenv("OPENBLAS_CORETYPE");
  fmt::print("core {}, {}; OpenBLAS {} ({}){}\n", options.core, name_of(device.isa()),
             openblas_get_config(), openblas_get_corename(),
             forced == nullptr ? "" : "; OPENBLAS_CORETYPE is set");
  fmt::print("{:13} {:>6} {:>6} {:>5} {:>9} {:>7} {:>7} {:>7} {:>6}\n", "GFLOP/s", "d_in", "d_out",
             "rows", "OpenBLAS", "f32", "bf16", "f32 x", "bf16 x");
  const auto chosen = [&](const std::string& name) {
    return options.names.empty() ||
           std::any_of(options.names.begin(), options.names.end(),
                       [&](const auto& part) { return name.find(part) != std::string::npos; });
  };
  double worst_small = 1e9;
  double worst_large = 1e9;
  for (const Shape& shape : kShapes) {
    if (chosen(shape.name)) race_linear(device, shape, options, worst_small, worst_large);
  }
  if (worst_large < 1e9) {
    fmt::print("least ratio: {:.2f} below 256 rows, {:.2f} from 256 on\n", worst_small,
               worst_large);
  }
  if (chosen("attention")) {
    race_attention(device, 300, 32, 128, options.turns);
    race_attention(device, 4000, 32, 128, options.turns);
    race_attention(device, 64, 8, 64, options.turns);
  }
}
