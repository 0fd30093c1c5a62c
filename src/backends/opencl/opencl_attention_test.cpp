// Attention on the OpenCL device has the bits of the CPU backend's in every form of its kernels:
// lanes of each width, work-groups of several sizes, whatever this device's own form is.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "backends/cached_case.h"
#include "backends/contract.h"
#include "backends/cpu/cpu_device.h"
#include "backends/opencl/opencl_device.h"
#include "backends/opencl/opencl_testing.h"

namespace quintet::opencl {
namespace {

// Limits that lead to a form; 0: as the device says.
struct Form {
  const char* name;
  uint32_t float_lanes;
  size_t work_group;
  size_t local_bytes;
};

constexpr Form kForms[] = {
    {"own", 0, 0, 0},          {"lanes_of_16", 16, 0, 0},
    {"lanes_of_8", 8, 0, 0},   {"lanes_of_4_in_little_memory", 16, 0, 13000},
    {"groups", 1, 256, 65536}, {"small_groups", 1, 48, 16384},
};

struct AttentionCase {
  std::vector<int> lengths;
  AttentionArgs args;
  bool holes = false;
  bool bias = true;
  int64_t tile = 1000;  // rows of a call
};

class OpenclAttention : public testing::TestWithParam<Form> {
 protected:
  void SetUp() override {
    const auto devices = devices_under_test();
    if (devices.empty()) GTEST_SKIP() << "no OpenCL device on this machine";
    const Form& form = GetParam();
    Limits limits = QueueSession(devices.front()).limits();
    exact_divide_ = limits.exact_divide;
    if (form.float_lanes > 0) {
      limits.float_lanes = form.float_lanes;
      limits.local_is_cache = form.float_lanes > 1;
    }
    // Never more than there is: the kernels have to run.
    if (form.work_group > 0) limits.work_group = std::min(limits.work_group, form.work_group);
    if (form.local_bytes > 0) limits.local_bytes = std::min(limits.local_bytes, form.local_bytes);
    opencl_ = std::make_unique<OpenclDevice>(
        std::make_unique<QueueSession>(devices.front(), SessionOptions{.limits = limits}));
    cpu_ = std::make_unique<CpuDevice>(
        CpuDeviceOptions{.name = "cpu", .cores = {}, .threads = 1, .isa = {}, .lending = nullptr});
  }

  static std::vector<float> run(Device& device, const AttentionCase& c) {
    const MicroBatch batch = make_batch(c.lengths, c.holes);
    const int64_t n = batch.n_tokens();
    const int64_t inner = c.args.n_heads * c.args.d_kv;
    const int64_t bias_cols = 2 * batch.max_len - 1;  // as few as there may be
    const Tensor all = device.allocate(n, 3 * inner);
    device.upload(numbers(static_cast<size_t>(n * 3 * inner), 51).data(), all);
    Tensor bias;
    if (c.bias) {
      bias = device.allocate(c.args.n_heads, bias_cols);
      device.upload(numbers(static_cast<size_t>(c.args.n_heads * bias_cols), 52).data(), bias);
    }
    const Tensor y = device.allocate(n, inner);
    for (int64_t row = 0; row < n; row += c.tile) {
      const int64_t count = std::min(c.tile, n - row);
      device.attention(all.columns(0, inner).rows(row, count), all.columns(inner, inner),
                       all.columns(2 * inner, inner), bias, batch, row, c.args, y.rows(row, count));
    }
    device.wait();
    std::vector<float> values(static_cast<size_t>(n * inner));
    device.download(y, values.data());
    return values;
  }

  void expect_same(const std::vector<float>& got, const std::vector<float>& want) const {
    ASSERT_EQ(got.size(), want.size());
    if (!exact_divide_) return expect_close(got, want);
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(std::memcmp(&got[i], &want[i], sizeof(float)), 0)
          << "element " << i << ": " << got[i] << " for " << want[i];
    }
  }

  bool exact_divide_ = false;
  std::unique_ptr<Device> opencl_;
  std::unique_ptr<Device> cpu_;
};

// d_kv of a few whole vectors and some columns, and of less than one.
TEST_P(OpenclAttention, HasTheBitsOfTheCpu) {
  for (const int64_t d_kv : {21, 3}) {
    const AttentionArgs args{.n_heads = 2, .d_kv = d_kv, .scale = 0.3F};
    AttentionArgs causal = args;
    causal.causal = true;
    const std::vector<AttentionCase> cases = {
        {.lengths = {1, 300, 0, 32, 33, 120, 121}, .args = args},
        {.lengths = {7, 270}, .args = args, .bias = false},
        {.lengths = {260, 50}, .args = causal},
        {.lengths = {130, 9}, .args = args, .holes = true},
        {.lengths = {130, 9}, .args = causal, .holes = true, .tile = 50},
        {.lengths = {250, 30}, .args = args, .tile = 7},
    };
    for (size_t i = 0; i < cases.size(); ++i) {
      SCOPED_TRACE(testing::Message() << "case " << i << ", d_kv " << d_kv);
      expect_same(run(*opencl_, cases[i]), run(*cpu_, cases[i]));
    }
  }
}

TEST_P(OpenclAttention, OverCachesHasTheBitsOfTheCpu) {
  for (const int64_t d_kv : {21, 3}) {
    for (const bool bias : {false, true}) {
      SCOPED_TRACE(testing::Message() << d_kv << " " << bias);
      const CachedCase c{
          .length = 250, .args = {.n_heads = 2, .d_kv = d_kv, .scale = 0.3F}, .bias = bias};
      const std::vector<float> want = c.whole(*cpu_);
      expect_same(c.whole(*opencl_), want);
      expect_same(c.cached(*opencl_, true), want);
      expect_same(c.cached(*opencl_, false), want);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, OpenclAttention, testing::ValuesIn(kForms),
                         [](const auto& form) { return std::string(form.param.name); });

}  // namespace
}  // namespace quintet::opencl
