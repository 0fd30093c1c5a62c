// The bits of the CPU's ops for decoding: whatever the number of threads and the instruction set.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "backends/cached_case.h"
#include "backends/cpu/cpu_device.h"

namespace quintet {
namespace {

std::unique_ptr<CpuDevice> device_of(Isa isa, int threads) {
  return std::make_unique<CpuDevice>(CpuDeviceOptions{.name = "cpu:0",
                                                      .cores = {},
                                                      .threads = threads,
                                                      .isa = isa,
                                                      .lending = std::make_shared<CoreLending>()});
}

// f(device) -> numbers, which are the same on all of them.
template <typename F>
void expect_equal_bits(const F& f) {
  std::vector<float> first;
  for (const Isa isa : {Isa::kAvx2, Isa::kAvx512}) {
    if (!has_isa(isa)) continue;
    for (const int threads : {1, 3}) {
      const std::vector<float> got = f(*device_of(isa, threads));
      if (first.empty()) first = got;
      ASSERT_EQ(got, first) << name_of(isa) << ", " << threads << " threads";
    }
  }
}

std::vector<float> get(Device& device, const Tensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.rows() * tensor.cols()));
  device.download(tensor, values.data());
  return values;
}

TEST(CpuDecoding, CachedAttentionHasTheBitsOfCausalAttention) {
  for (const int64_t d_kv : {8, 20, 64, 128}) {
    for (const bool bias : {false, true}) {
      SCOPED_TRACE(testing::Message() << d_kv << " " << bias);
      const CachedCase c{
          .length = 250, .args = {.n_heads = 3, .d_kv = d_kv, .scale = 0.2F}, .bias = bias};
      expect_equal_bits([&](Device& device) {
        const auto cached = c.cached(device, true);
        EXPECT_EQ(cached, c.cached(device, false));
        EXPECT_EQ(cached, c.whole(device));
        return cached;
      });
    }
  }
}

TEST(CpuDecoding, LayerNorm) {
  for (const int64_t cols : {1, 15, 16, 100, 768}) {
    expect_equal_bits([&](Device& device) {
      const auto put = [&](int64_t rows, uint32_t seed) {
        const Tensor tensor = device.allocate(rows, cols, DType::kFloat32);
        device.upload(numbers(static_cast<size_t>(rows * cols), seed).data(), tensor);
        return tensor;
      };
      const Tensor x = put(40, 1);
      device.layer_norm(x, put(1, 2), put(1, 3), 1e-5F, x);
      return get(device, x);
    });
  }
}

// With fewer rows than threads a row is shared out, else it is not.
TEST(CpuDecoding, LogSoftmax) {
  for (const int64_t rows : {1, 2, 5}) {
    expect_equal_bits([&](Device& device) {
      const Tensor x = device.allocate(rows, 30001, DType::kFloat32);
      device.upload(numbers(static_cast<size_t>(rows * 30001), 4, 5).data(), x);
      device.log_softmax(x);
      return get(device, x);
    });
  }
}

}  // namespace
}  // namespace quintet
