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
  double fastest = std::numeric_limits<double>::infinity();
};

// The probes in turn, round after round, so that each sees the same stretch of time. Whatever else
// runs on the machine can only make a run slower, so the fastest one is the device's own speed.
void time_probes(Device& device, std::vector<Probe>& probes) {
  constexpr double kBudget = 0.1;  // seconds for all
  constexpr int kMinRounds = 7;
  // Once without a clock: a device may first have to compile what it runs.
  for (const Probe& probe : probes) probe.work();
  device.wait();
  const auto start = Clock::now();
  for (int round = 0; round < kMinRounds || seconds_since(start) < kBudget; ++round) {
    for (Probe& probe : probes) {
      const auto begin = Clock::now();
      probe.work();
      device.wait();
      probe.fastest = std::min(probe.fastest, std::max(1e-9, seconds_since(begin)));
    }
    if (seconds_since(start) > 2 * kBudget) break;
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

constexpr int64_t kLength = 256;
constexpr AttentionArgs kAttention = {.n_heads = 4, .d_kv = 64};
constexpr int64_t kAttentionWidth = kAttention.n_heads * kAttention.d_kv;

// One sequence that attends to itself, with a position bias.
std::function<void()> attention(Device& device) {
  MicroBatch batch;
  batch.tokens.assign(kLength, 0);
  for (int32_t i = 0; i < kLength; ++i) batch.positions.push_back(i);
  batch.cu_seqlens = {0, kLength};
  batch.ordinals = {0};
  batch.pool_begin = {0};
  batch.pool_end = {kLength};
  batch.max_len = kLength;
  const Tensor x = filled(device, kLength, 3 * kAttentionWidth);
  return [&device, batch, q = x.columns(0, kAttentionWidth),
          k = x.columns(kAttentionWidth, kAttentionWidth),
          v = x.columns(2 * kAttentionWidth, kAttentionWidth),
          bias = filled(device, kAttention.n_heads, 2 * kLength - 1),
          y = device.allocate(kLength, kAttentionWidth)] {
    device.attention(q, k, v, bias, batch, 0, kAttention, y);
  };
}

DeviceSpeed measure_on_this_thread(Device& device) {
  constexpr int64_t kRows = 64;
  constexpr int64_t kWidth = 1024;
  constexpr int64_t kStreamWidth = 2048;
  constexpr double kFlops = 2.0 * kRows * kWidth * kWidth;
  device.attach_thread();
  std::vector<Probe> probes;
  const auto add = [&](double DeviceSpeed::*field, double amount, std::function<void()> work) {
    probes.push_back({.field = field, .amount = amount, .work = std::move(work)});
  };
  add(&DeviceSpeed::float32_flops, kFlops, product(device, kRows, kWidth, DType::kFloat32));
  add(&DeviceSpeed::bfloat16_flops, kFlops, product(device, kRows, kWidth, DType::kBFloat16));
  add(&DeviceSpeed::float16_flops, kFlops, product(device, kRows, kWidth, DType::kFloat16));
  // q k^T and the weighted sum of v, two flops each per element.
  add(&DeviceSpeed::attention_flops, 4.0 * kLength * kLength * kAttentionWidth, attention(device));
  // One row: all time goes into fetching the weight, 16 MiB that no core's own cache holds.
  add(&DeviceSpeed::bytes_per_second, 4.0 * kStreamWidth * kStreamWidth,
      product(device, 1, kStreamWidth, DType::kFloat32));
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
