// Products on the OpenCL device have the bits of the CPU backend's, by either kernel, whatever the
// number of rows and wherever the matrices lie.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "backends/contract.h"
#include "backends/cpu/cpu_device.h"
#include "backends/opencl/opencl_device.h"
#include "backends/opencl/opencl_testing.h"
#include "backends/opencl/panel_weight.h"

namespace quintet::opencl {
namespace {

struct Shape {
  int64_t rows;
  int64_t d_in;
  int64_t d_out;
};

std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  return out << shape.rows << " x " << shape.d_in << " x " << shape.d_out;
}

struct Case {
  Shape shape;
  DType stored = DType::kFloat32;
  PackOptions options = {};
  Epilogue epilogue = {};
  bool with_bias = false;
};

// The parameter is how products are made, see panel_shape().
class Products : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const auto devices = devices_under_test();
    if (devices.empty()) GTEST_SKIP() << "no OpenCL device on this machine";
    ::setenv("QUINTET_OPENCL_PRODUCTS", GetParam(), 1);
    auto session = std::make_unique<QueueSession>(devices.front());
    exact_divide_ = session->limits().exact_divide;
    opencl_ = std::make_unique<OpenclDevice>(std::move(session));
    cpu_ = std::make_unique<CpuDevice>(
        CpuDeviceOptions{.name = "cpu", .cores = {}, .threads = 1, .isa = {}, .lending = nullptr});
  }
  void TearDown() override { ::unsetenv("QUINTET_OPENCL_PRODUCTS"); }

  static std::vector<float> get(Device& device, const Tensor& tensor) {
    device.wait();
    std::vector<float> values(static_cast<size_t>(tensor.rows() * tensor.cols()));
    device.download(tensor, values.data());
    return values;
  }

  // y of a case, x and y being parts of larger matrices.
  static std::vector<float> run(Device& device, const Case& c, int64_t rows) {
    const int64_t n_parts = c.options.gated ? 2 : 1;
    const auto n = static_cast<size_t>(c.shape.d_out * c.shape.d_in);
    std::vector<std::vector<std::byte>> bytes;
    std::vector<HostView> parts;
    for (int64_t part = 0; part < n_parts; ++part) {
      bytes.push_back(stored_as(c.stored, numbers(n, 5 + static_cast<uint32_t>(part), 0.3F)));
      parts.push_back({.name = "w",
                       .data = bytes.back().data(),
                       .dtype = c.stored,
                       .shape = {c.shape.d_out, c.shape.d_in}});
    }
    const auto weight = device.pack(parts, c.options);
    EXPECT_EQ(weight->d_out(), c.shape.d_out);
    EXPECT_EQ(weight->d_in(), c.shape.d_in);
    const auto x = numbers(static_cast<size_t>(c.shape.rows * c.shape.d_in), 6);
    const auto y = numbers(static_cast<size_t>(c.shape.rows * c.shape.d_out), 7);
    const auto bias = numbers(static_cast<size_t>(c.shape.d_out), 8);
    const Tensor x_part =
        device.allocate(c.shape.rows + 1, c.shape.d_in + 5).rows(1, rows).columns(2, c.shape.d_in);
    const Tensor y_part = device.allocate(c.shape.rows + 2, c.shape.d_out + 3)
                              .rows(2, rows)
                              .columns(3, c.shape.d_out);
    device.upload(x.data(), x_part);
    device.upload(y.data(), y_part);
    Epilogue epilogue = c.epilogue;
    if (c.with_bias) {
      epilogue.bias = device.allocate(1, c.shape.d_out + 1).columns(1, c.shape.d_out);
      device.upload(bias.data(), epilogue.bias);
    }
    device.linear(x_part, *weight, epilogue, y_part);
    return get(device, y_part);
  }

  void expect_equal_bits(const Case& c) const {
    SCOPED_TRACE(testing::Message() << c.shape << " in " << name_of(c.options.dtype));
    const std::vector<float> want = run(*cpu_, c, c.shape.rows);
    const std::vector<float> got = run(*opencl_, c, c.shape.rows);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(std::memcmp(&got[i], &want[i], sizeof(float)), 0)
          << "element " << i << ": " << got[i] << " instead of " << want[i];
    }
  }

  bool exact_divide_ = false;
  std::unique_ptr<Device> opencl_;
  std::unique_ptr<Device> cpu_;
};

TEST_P(Products, HaveTheBitsOfTheCpu) {
  for (const Shape shape :
       {Shape{1, 1, 1}, {2, 7, 33}, {17, 300, 64}, {60, 513, 130}, {601, 20, 70}}) {
    for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
      expect_equal_bits({.shape = shape, .options = {.dtype = dtype}});
      if (dtype != DType::kFloat32) continue;
      expect_equal_bits(
          {.shape = shape, .epilogue = {.accumulate = true, .scale = 0.7F}, .with_bias = true});
    }
  }
}

TEST_P(Products, OfGatedWeightsHaveTheBitsOfTheCpu) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
    for (const Shape shape : {Shape{3, 40, 1}, {2, 30, 50}, {20, 300, 75}}) {
      expect_equal_bits({.shape = shape,
                         .options = {.dtype = dtype, .gated = true},
                         .epilogue = {.activation = Activation::kRelu, .scale = -1.5F}});
    }
  }
}

TEST_P(Products, StoredAndPackedInEveryDType) {
  for (const DType stored : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
    for (const DType packed : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
      expect_equal_bits({.shape = {3, 70, 45}, .stored = stored, .options = {.dtype = packed}});
    }
  }
}

TEST_P(Products, EveryActivationHasTheBitsOfTheCpu) {
  if (!exact_divide_) GTEST_SKIP() << "the device divides inexactly";
  for (const Activation activation :
       {Activation::kGeluTanh, Activation::kGeluErf, Activation::kSilu, Activation::kTanh,
        Activation::kGeluQuick}) {
    for (const bool gated : {false, true}) {
      expect_equal_bits({.shape = {9, 24, 50},
                         .options = {.gated = gated},
                         .epilogue = {.activation = activation, .accumulate = gated}});
    }
  }
}

// A row's bits are the same beside any number of others.
TEST_P(Products, DoNotDependOnTheNumberOfRows) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
    const Case c{.shape = {130, 530, 72}, .options = {.dtype = dtype}};
    const std::vector<float> all = run(*opencl_, c, c.shape.rows);
    for (const int64_t rows : {1, 8, 25, 97}) {
      const std::vector<float> some = run(*opencl_, c, rows);
      EXPECT_EQ(std::memcmp(some.data(), all.data(), some.size() * sizeof(float)), 0) << rows;
    }
  }
}

TEST_P(Products, WithoutStepsAreWhatTheEpilogueMakesOfZero) {
  expect_equal_bits({.shape = {3, 0, 40}, .with_bias = true});
}

TEST_P(Products, WeightRowsAreThePackedNumbers) {
  const std::vector<float> values = numbers(37 * 45, 3);
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
    const auto bytes = stored_as(dtype, values);
    const HostView view{.name = "w", .data = bytes.data(), .dtype = dtype, .shape = {37, 45}};
    const auto weight = opencl_->pack({&view, 1}, {.dtype = dtype});
    const std::vector<int32_t> ids = {36, 0, 5, 5, 31, 32};
    const Tensor y = opencl_->allocate(6, 50).columns(1, 45);
    opencl_->weight_rows(ids, *weight, y);
    std::vector<float> want(6 * 45);
    for (size_t i = 0; i < ids.size(); ++i) {
      widen(bytes.data() + static_cast<size_t>(ids[i]) * 45 * size_of(dtype), dtype, 45,
            want.data() + i * 45);
    }
    EXPECT_EQ(get(*opencl_, y), want);
  }
}

TEST_P(Products, ATooLargeValueIsNamed) {
  std::vector<float> values(40, 1.0F);
  values[17] = -70000.0F;
  const HostView view{.name = "layer.w",
                      .data = reinterpret_cast<const std::byte*>(values.data()),
                      .dtype = DType::kFloat32,
                      .shape = {4, 10}};
  try {
    opencl_->pack({&view, 1}, {.dtype = DType::kFloat16});
    FAIL() << "70000 was packed as float16";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kFile);
    EXPECT_STREQ(error.what(),
                 "'layer.w': the largest value is 70000, float16 ends at 65504; use --dtype "
                 "bfloat16 or float32");
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, Products, testing::Values("wide", "tiled"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace quintet::opencl
