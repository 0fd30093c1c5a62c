#include "backends/measure.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

namespace quintet {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The median of one run's seconds: one run to warm up, then as many as the budget allows, three at
// least; where one alone takes twice the budget, it is all.
double median_seconds(Device& device, double budget, const std::function<void()>& work) {
  const auto start = Clock::now();
  work();
  device.wait();
  if (const double first = seconds_since(start); first >= 2 * budget) return first;
  std::vector<double> runs;
  while (runs.size() < 3 || (seconds_since(start) < budget && runs.size() < 50)) {
    const auto begin = Clock::now();
    work();
    device.wait();
    runs.push_back(seconds_since(begin));
  }
  std::nth_element(runs.begin(), runs.begin() + static_cast<std::ptrdiff_t>(runs.size() / 2),
                   runs.end());
  return std::max(1e-9, runs[runs.size() / 2]);
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
  const Tensor tensor = device.allocate(rows, cols);
  device.upload(values(static_cast<size_t>(rows * cols)).data(), tensor);
  return tensor;
}

double product_seconds(Device& device, double budget, int64_t rows, const Weight& weight) {
  const Tensor x = filled(device, rows, weight.d_in());
  const Tensor y = device.allocate(rows, weight.d_out());
  return median_seconds(device, budget, [&] { device.linear(x, weight, {}, y); });
}

std::unique_ptr<Weight> random_weight(Device& device, int64_t d_out, int64_t d_in, DType dtype) {
  const auto data = values(static_cast<size_t>(d_out * d_in));
  const HostView view = {.name = "calibration",
                         .data = reinterpret_cast<const std::byte*>(data.data()),
                         .dtype = DType::kFloat32,
                         .shape = {d_out, d_in}};
  return device.pack({&view, 1}, {.dtype = dtype});
}

double attention_flops(Device& device, double budget) {
  constexpr int64_t kLength = 256;
  constexpr AttentionArgs kArgs = {.n_heads = 8, .d_kv = 64};
  constexpr int64_t kWidth = kArgs.n_heads * kArgs.d_kv;
  MicroBatch batch;
  batch.tokens.assign(kLength, 0);
  for (int32_t i = 0; i < kLength; ++i) batch.positions.push_back(i);
  batch.cu_seqlens = {0, kLength};
  batch.ordinals = {0};
  batch.pool_begin = {0};
  batch.pool_end = {kLength};
  batch.max_len = kLength;
  const Tensor q = filled(device, kLength, kWidth);
  const Tensor k = filled(device, kLength, kWidth);
  const Tensor v = filled(device, kLength, kWidth);
  const Tensor bias = filled(device, kArgs.n_heads, 2 * kLength - 1);
  const Tensor y = device.allocate(kLength, kWidth);
  const double seconds =
      median_seconds(device, budget, [&] { device.attention(q, k, v, bias, batch, 0, kArgs, y); });
  // q k^T and the weighted sum of v, two flops each per element.
  return 4.0 * kLength * kLength * kWidth / seconds;
}

// Of kRows rows, or of a few where the device is so slow that the many would take seconds.
double product_flops(Device& device, double budget, const Weight& weight) {
  constexpr int64_t kRows = 256;
  constexpr int64_t kFewRows = 8;
  const auto flops = 2.0 * static_cast<double>(weight.d_out() * weight.d_in());
  const double few = product_seconds(device, 0, kFewRows, weight);
  if (few * (kRows / kFewRows) > 8 * budget) return flops * kFewRows / few;
  return flops * kRows / product_seconds(device, budget, kRows, weight);
}

DeviceSpeed measure_on_this_thread(Device& device) {
  constexpr double kBudget = 0.02;  // seconds per measurement
  DeviceSpeed speed;
  device.attach_thread();
  for (const auto& [dtype, field] : {std::pair{DType::kFloat32, &DeviceSpeed::float32_flops},
                                     std::pair{DType::kBFloat16, &DeviceSpeed::bfloat16_flops},
                                     std::pair{DType::kFloat16, &DeviceSpeed::float16_flops}}) {
    const auto weight = random_weight(device, 1024, 1024, dtype);
    speed.*field = product_flops(device, kBudget, *weight);
  }
  {
    // One row: all time goes into fetching the weight, 16 MiB that no core's own cache holds.
    const auto weight = random_weight(device, 2048, 2048, DType::kFloat32);
    const double seconds = product_seconds(device, kBudget, 1, *weight);
    speed.bytes_per_second = 4.0 * 2048 * 2048 / seconds;
  }
  speed.attention_flops = attention_flops(device, kBudget);
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
