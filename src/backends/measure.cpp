#include "backends/measure.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace quintet {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Something to time: what it gives is `amount` (flops or bytes) per run over its fastest run.
struct Probe {
  double DeviceSpeed::*field = nullptr;
  double amount = 0;
  std::function<void()> work;
  int64_t runs = 1;  // between two looks at the clock
  double fastest = std::numeric_limits<double>::infinity();
};

// Seconds of one of `runs` runs.
double time_runs(Device& device, const std::function<void()>& work, int64_t runs) {
  const auto begin = Clock::now();
  for (int64_t i = 0; i < runs; ++i) work();
  device.wait();
  return std::max(1e-9, seconds_since(begin)) / static_cast<double>(runs);
}

// The probes in turn, round after round, so that each sees the same stretch of time. Whatever else
// runs on the machine can only make a run slower, so the fastest one is the device's own speed.
void time_probes(Device& device, std::vector<Probe>& probes) {
  constexpr double kBudget = 0.1;  // seconds for all
  constexpr int kMinRounds = 7;
  const auto start = Clock::now();
  for (int round = 0; round < kMinRounds || seconds_since(start) < kBudget; ++round) {
    for (Probe& probe : probes) {
      probe.fastest = std::min(probe.fastest, time_runs(device, probe.work, probe.runs));
    }
    if (seconds_since(start) > 2 * kBudget) break;
  }
}

// Runs each probe until its kernels are there and its memory is; a queue is then given so many runs
// at a time that what it costs to start and to await them does not count.
void warm_up(Device& device, std::vector<Probe>& probes) {
  constexpr double kStretch = 2e-3;  // seconds
  constexpr double kMostRuns = 256;
  device.wait();
  for (Probe& probe : probes) {
    const double first = time_runs(device, probe.work, 1);
    if (!device.asynchronous()) continue;
    const double second = first > 4 * kStretch ? time_runs(device, probe.work, 1) : first;
    probe.runs = static_cast<int64_t>(std::clamp(kStretch / second, 1.0, kMostRuns));
    if (probe.runs > 1) time_runs(device, probe.work, probe.runs);
  }
}

// Small values of both signs without structure, the same at each call.
std::vector<float> values(size_t n) {
  std::vector<float> out(n);
  uint32_t state = 2463534242U;
  for (float& value : out) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    value = static_cast<float>(static_cast<int32_t>(state)) * 0x1p-34F;
  }
  return out;
}

Tensor filled(Device& device, int64_t rows, int64_t cols) {
  Tensor tensor = device.allocate(rows, cols);
  device.upload(values(static_cast<size_t>(rows * cols)).data(), tensor);
  return tensor;
}

// A product of `rows` rows with a random square weight.
std::function<void()> product(Device& device, int64_t rows, int64_t width, DType dtype) {
  const auto data = values(static_cast<size_t>(width * width));
  const HostView view = {.name = "calibration",
                         .data = reinterpret_cast<const std::byte*>(data.data()),
                         .dtype = DType::kFloat32,
                         .shape = {width, width},
                         .file = nullptr};
  const std::shared_ptr<Weight> weight = device.pack({&view, 1}, {.dtype = dtype});
  return [&device, weight, x = filled(device, rows, width), y = device.allocate(rows, width)] {
    device.linear(x, *weight, {}, y);
  };
}

constexpr int64_t kHeadWidth = 64;

// One sequence that attends to itself, with a position bias.
std::function<void()> attention(Device& device, int64_t length, int64_t n_heads) {
  MicroBatch batch;
  batch.tokens.assign(static_cast<size_t>(length), 0);
  for (int32_t i = 0; i < length; ++i) batch.positions.push_back(i);
  batch.cu_seqlens = {0, static_cast<int32_t>(length)};
  batch.ordinals = {0};
  batch.pool_begin = {0};
  batch.pool_end = {static_cast<int32_t>(length)};
  batch.max_len = static_cast<int32_t>(length);
  const int64_t width = n_heads * kHeadWidth;
  const Tensor x = filled(device, length, 3 * width);
  return [&device, batch, args = AttentionArgs{.n_heads = n_heads, .d_kv = kHeadWidth},
          q = x.columns(0, width), k = x.columns(width, width), v = x.columns(2 * width, width),
          bias = filled(device, n_heads, 2 * length - 1), y = device.allocate(length, width)] {
    device.attention(q, k, v, bias, batch, 0, args, y);
  };
}

// How much a probe is to work, by how fast the device turns out to be.
struct Sizes {
  int64_t rows = 64;  // of products
  int64_t length = 256;
  int64_t n_heads = 4;
};

constexpr int64_t kWidth = 1024;

// A device with many units needs as many rows as a micro-batch has to use them all, a very slow one
// is known after few. Devices that compute on this thread reach their speed with 64 rows.
Sizes sizes_for(Device& device) {
  constexpr double kSlow = 8e-3;   // seconds of 8 rows: 2 GFLOP/s
  constexpr double kFast = 20e-3;  // of 64 rows
  const auto fastest = [&](int64_t rows) {
    const auto work = product(device, rows, kWidth, DType::kFloat32);
    double seconds = time_runs(device, work, 1);  // builds kernels, perhaps
    for (int i = 0; i < 2; ++i) seconds = std::min(seconds, time_runs(device, work, 1));
    return seconds;
  };
  if (fastest(8) > kSlow) return {.rows = 8, .length = 64, .n_heads = 4};
  if (!device.asynchronous() || fastest(64) > kFast) return {};
  return {.rows = 512, .length = 256, .n_heads = 16};
}

DeviceSpeed measure_on_this_thread(Device& device) {
  constexpr int64_t kStreamWidth = 2048;
  device.attach_thread();
  const Sizes sizes = sizes_for(device);
  const auto rows = static_cast<double>(sizes.rows);
  const auto length = static_cast<double>(sizes.length);
  const double flops = 2.0 * rows * kWidth * kWidth;
  std::vector<Probe> probes;
  const auto add = [&](double DeviceSpeed::*field, double amount, std::function<void()> work) {
    probes.push_back({.field = field, .amount = amount, .work = std::move(work)});
  };
  add(&DeviceSpeed::float32_flops, flops, product(device, sizes.rows, kWidth, DType::kFloat32));
  add(&DeviceSpeed::bfloat16_flops, flops, product(device, sizes.rows, kWidth, DType::kBFloat16));
  add(&DeviceSpeed::float16_flops, flops, product(device, sizes.rows, kWidth, DType::kFloat16));
  // q k^T and the weighted sum of v, two flops each per element.
  add(&DeviceSpeed::attention_flops,
      4.0 * length * length * static_cast<double>(sizes.n_heads * kHeadWidth),
      attention(device, sizes.length, sizes.n_heads));
  // One row: all time goes into fetching the weight, 16 MiB that no core's own cache holds.
  add(&DeviceSpeed::bytes_per_second, 4.0 * kStreamWidth * kStreamWidth,
      product(device, 1, kStreamWidth, DType::kFloat32));
  warm_up(device, probes);
  time_probes(device, probes);
  DeviceSpeed speed;
  for (const Probe& probe : probes) speed.*probe.field = probe.amount / probe.fastest;
  return speed;
}

}  // namespace

DeviceSpeed measure_device(Device& device) {
  DeviceSpeed speed;
  std::exception_ptr error;
  // A thread of its own: driving a device pins the thread that does it.
  std::thread([&] {
    try {
      speed = measure_on_this_thread(device);
    } catch (...) {
      error = std::current_exception();
    }
  }).join();
  device.empty_cache();
  if (error) std::rethrow_exception(error);
  return speed;
}

}  // namespace quintet
