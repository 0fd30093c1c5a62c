// What the contract's tests share: the devices under test beside the reference, numbers, and the
// comparison of the two.
#ifndef QUINTET_BACKENDS_CONTRACT_H_
#define QUINTET_BACKENDS_CONTRACT_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "backends/device.h"
#include "backends/reference/reference_device.h"
#include "backends/registry.h"
#include "core/error.h"
#include "core/split_list.h"

namespace quintet {

inline constexpr double kTolerance = 2e-6;  // norm of the difference over norm

inline std::vector<std::string> test_devices() {
  const char* names = std::getenv("QUINTET_TEST_DEVICES");
  return split_list(names == nullptr ? "cpu:0,opencl:0,opencl:0/2[1]" : names);
}

inline std::vector<float> numbers(size_t n, uint32_t seed, float scale = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> values(n);
  for (float& value : values) value = normal(random);
  return values;
}

// The values in a checkpoint's dtype, as bytes.
inline std::vector<std::byte> stored_as(DType dtype, const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * size_of(dtype));
  narrow(values.data(), values.size(), dtype, bytes.data());
  return bytes;
}

inline void expect_close(const std::vector<float>& got, const std::vector<float>& want,
                         double tolerance = kTolerance) {
  ASSERT_EQ(got.size(), want.size());
  double difference = 0;
  double norm = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_TRUE(std::isfinite(got[i])) << "element " << i;
    difference += (double{got[i]} - want[i]) * (double{got[i]} - want[i]);
    norm += double{want[i]} * want[i];
  }
  EXPECT_LE(std::sqrt(difference), tolerance * std::sqrt(norm));
}

// Lengths of sequences, with every third position left out where `holes`.
inline MicroBatch make_batch(const std::vector<int>& lengths, bool holes = false) {
  MicroBatch batch;
  batch.cu_seqlens = {0};
  for (const int length : lengths) {
    int position = holes ? 2 : 0;
    for (int i = 0; i < length; ++i, ++position) {
      if (holes && position % 3 == 0) ++position;
      batch.tokens.push_back(0);
      batch.positions.push_back(position);
      batch.max_len = std::max(batch.max_len, position + 1);
    }
    batch.ordinals.push_back(batch.ordinals.size());
    batch.cu_seqlens.push_back(static_cast<int32_t>(batch.tokens.size()));
  }
  return batch;
}

class Contract : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    try {
      device_ = open_device(GetParam());
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kDevice) throw;
      GTEST_SKIP() << error.what();
    }
  }

  static Tensor put(Device& device, const std::vector<float>& values, int64_t rows, int64_t cols) {
    Tensor tensor = device.allocate(rows, cols);
    device.upload(values.data(), tensor);
    return tensor;
  }
  static std::vector<float> get(Device& device, const Tensor& tensor) {
    device.wait();
    std::vector<float> values(static_cast<size_t>(tensor.rows() * tensor.cols()));
    device.download(tensor, values.data());
    return values;
  }

  // Runs `op(device) -> Tensor` on both.
  template <typename Op>
  void compare(const Op& op, double tolerance = kTolerance) {
    const std::vector<float> got = get(*device_, op(*device_));
    expect_close(got, get(reference_, op(reference_)), tolerance);
  }

  OpenedDevice device_;
  ReferenceDevice reference_;
};

inline std::string name_of_device(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace_if(
      name.begin(), name.end(), [](char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

}  // namespace quintet

#endif  // QUINTET_BACKENDS_CONTRACT_H_
