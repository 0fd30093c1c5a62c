// The CPU's ops against double precision, and their bits against themselves: rows cut differently,
// other threads, the other instruction set.
#include "backends/cpu/cpu_device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "core/error.h"

namespace quintet {
namespace {

std::vector<float> numbers(size_t n, uint32_t seed, float scale = 1.0F) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0F, scale);
  std::vector<float> values(n);
  for (float& value : values) value = normal(random);
  return values;
}

std::unique_ptr<CpuDevice> device_of(Isa isa, int threads = 1) {
  return std::make_unique<CpuDevice>(CpuDeviceOptions{.name = "cpu:0",
                                                      .cores = {},
                                                      .threads = threads,
                                                      .isa = isa,
                                                      .lending = std::make_shared<CoreLending>()});
}

std::vector<Isa> isas() {
  std::vector<Isa> list;
  for (const Isa isa : {Isa::kAvx2, Isa::kAvx512}) {
    if (has_isa(isa)) list.push_back(isa);
  }
  return list;
}

Tensor put(Device& device, const std::vector<float>& values, int64_t rows, int64_t cols) {
  Tensor t = device.allocate(rows, cols);
  device.upload(values.data(), t);
  return t;
}

std::vector<float> get(Device& device, const Tensor& t) {
  std::vector<float> values(static_cast<size_t>(t.rows() * t.cols()));
  device.download(t, values.data());
  return values;
}

// A matrix as a file holds it, at an odd address.
struct Stored {
  std::vector<std::byte> bytes;
  HostView view;
  std::vector<float> exact;  // what the bytes say

  Stored(const std::vector<float>& values, int64_t rows, int64_t cols, DType dtype)
      : bytes(values.size() * size_of(dtype) + 1), exact(values.size()) {
    narrow(values.data(), values.size(), dtype, bytes.data() + 1);
    widen(bytes.data() + 1, dtype, values.size(), exact.data());
    view = {.name = "w", .data = bytes.data() + 1, .dtype = dtype, .shape = {rows, cols}};
  }
};

double activate(Activation activation, double x) {
  switch (activation) {
    case Activation::kRelu:
      return std::max(x, 0.0);
    case Activation::kGeluTanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case Activation::kGeluErf:
      return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
    case Activation::kSilu:
      return x / (1 + std::exp(-x));
    case Activation::kTanh:
      return std::tanh(x);
    case Activation::kGeluQuick:
      return x / (1 + std::exp(-1.702 * x));
    case Activation::kNone:
      break;
  }
  return x;
}

struct Shape {
  int64_t m, n, k;
};

// Every element against double precision, within the error of a chain of k roundings.
void check_linear(Device& device, Shape s, DType stored, DType packed, Activation activation,
                  bool gated, bool accumulate) {
  SCOPED_TRACE(fmt::format("{}x{}x{} {} as {} gated {} add {} activation {}", s.m, s.n, s.k,
                           name_of(stored), name_of(packed), gated, accumulate,
                           static_cast<int>(activation)));
  const auto x = numbers(static_cast<size_t>(s.m * s.k), 1);
  const float scale = 1.0F / std::sqrt(static_cast<float>(std::max<int64_t>(1, s.k)));
  const Stored first(numbers(static_cast<size_t>(s.n * s.k), 2, scale), s.n, s.k, stored);
  const Stored second(numbers(static_cast<size_t>(s.n * s.k), 3, scale), s.n, s.k, stored);
  const auto before = numbers(static_cast<size_t>(s.m * s.n), 4);
  std::vector<HostView> parts{first.view};
  if (gated) parts.push_back(second.view);
  const auto weight = device.pack(parts, {.dtype = packed, .gated = gated});
  EXPECT_EQ(weight->d_out(), s.n);
  EXPECT_EQ(weight->d_in(), s.k);
  const Tensor y = put(device, before, s.m, s.n);
  device.linear(put(device, x, s.m, s.k), *weight, {activation, accumulate}, y);
  const auto got = get(device, y);

  const auto rounded = [&](const Stored& w) {
    std::vector<std::byte> bytes(w.exact.size() * size_of(packed));
    std::vector<float> values(w.exact.size());
    narrow(w.exact.data(), values.size(), packed, bytes.data());
    widen(bytes.data(), packed, values.size(), values.data());
    return values;
  };
  const auto w0 = rounded(first);
  const auto w1 = rounded(second);
  for (int64_t i = 0; i < s.m; ++i) {
    for (int64_t j = 0; j < s.n; ++j) {
      double sum = 0;
      double gate = 0;
      for (int64_t k = 0; k < s.k; ++k) {
        const double a = x[static_cast<size_t>(i * s.k + k)];
        sum += a * w0[static_cast<size_t>(j * s.k + k)];
        gate += a * w1[static_cast<size_t>(j * s.k + k)];
      }
      double want = activate(activation, sum) * (gated ? gate : 1.0);
      if (accumulate) want += before[static_cast<size_t>(i * s.n + j)];
      const double error = 2e-5 * (1.0 + std::fabs(gate));
      ASSERT_NEAR(got[static_cast<size_t>(i * s.n + j)], want, error) << i << ", " << j;
    }
  }
}

TEST(CpuLinear, EqualsDoublePrecisionAtAwkwardSizes) {
  for (const Isa isa : isas()) {
    const auto device = device_of(isa, 2);
    for (const Shape s : {Shape{1, 1, 1},
                          {2, 33, 3},
                          {3, 31, 5},
                          {5, 100, 17},
                          {6, 64, 255},
                          {7, 65, 257},
                          {12, 16, 300},
                          {13, 130, 64},
                          {50, 70, 513},
                          {25, 9, 1030}}) {
      for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
        check_linear(*device, s, dtype, dtype, Activation::kNone, false, false);
        check_linear(*device, s, DType::kFloat32, dtype, Activation::kGeluTanh, true, true);
      }
      check_linear(*device, s, DType::kFloat16, DType::kFloat32, Activation::kRelu, false, true);
      check_linear(*device, s, DType::kBFloat16, DType::kFloat32, Activation::kGeluErf, false,
                   false);
      check_linear(*device, s, DType::kFloat32, DType::kFloat32, Activation::kSilu, true, false);
    }
    check_linear(*device, {2, 5, 16384}, DType::kFloat32, DType::kBFloat16, Activation::kNone,
                 false, false);
  }
}

TEST(CpuLinear, NothingTimesNothing) {
  for (const Isa isa : isas()) {
    const auto device = device_of(isa);
    for (const Shape s : {Shape{0, 4, 4}, {4, 0, 4}, {4, 4, 0}}) {
      check_linear(*device, s, DType::kFloat32, DType::kFloat32, Activation::kNone, false, true);
    }
  }
}

std::vector<float> linear_in_parts(Device& device, Shape s, DType dtype, bool gated,
                                   const std::vector<int64_t>& cuts) {
  const Stored w(numbers(static_cast<size_t>(2 * s.n * s.k), 5), 2 * s.n, s.k, DType::kFloat32);
  HostView half = w.view;
  half.shape[0] = s.n;
  HostView rest = half;
  rest.data = w.view.row(s.n);
  const std::vector<HostView> both{half, rest};
  const auto weight = gated ? device.pack(both, {dtype, true}) : device.pack({&half, 1}, {dtype});
  const Tensor x = put(device, numbers(static_cast<size_t>(s.m * s.k), 6), s.m, s.k);
  const Tensor y = put(device, numbers(static_cast<size_t>(s.m * s.n), 7), s.m, s.n);
  int64_t begin = 0;
  for (const int64_t cut : cuts) {
    device.linear(x.rows(begin, cut - begin), *weight, {Activation::kGeluTanh, true},
                  y.rows(begin, cut - begin));
    begin = cut;
  }
  return get(device, y);
}

// Equal bits whatever the rows next to it, the threads and the instruction set.
TEST(CpuLinear, BitsDependOnNothingElse) {
  const Shape s{211, 333, 700};
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
    for (const bool gated : {false, true}) {
      const auto whole = linear_in_parts(*device_of(Isa::kAvx2), s, dtype, gated, {211});
      for (const Isa isa : isas()) {
        for (const int threads : {1, 3}) {
          const auto device = device_of(isa, threads);
          EXPECT_EQ(linear_in_parts(*device, s, dtype, gated, {211}), whole);
          EXPECT_EQ(
              linear_in_parts(*device, s, dtype, gated, {1, 3, 6, 10, 15, 21, 34, 47, 150, 211}),
              whole);
        }
      }
    }
  }
}

// Decoding's products: any number of rows alone and among 64, with everything that an epilogue
// does.
TEST(CpuLinear, AnyNumberOfRowsHasTheSameBits) {
  constexpr int64_t kRows = 64;
  const Shape s{kRows, 301, 333};
  const Stored w(numbers(static_cast<size_t>(s.n * s.k), 11, 0.1F), s.n, s.k, DType::kFloat32);
  const auto x_values = numbers(static_cast<size_t>(s.m * s.k), 12);
  const auto y_values = numbers(static_cast<size_t>(s.m * s.n), 13);
  const auto bias_values = numbers(static_cast<size_t>(s.n), 14);
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
    for (const bool gated : {false, true}) {
      std::vector<float> whole;
      for (const Isa isa : isas()) {
        const auto device = device_of(isa, 3);
        const std::vector<HostView> parts(gated ? 2 : 1, w.view);
        const auto weight = device->pack(parts, {.dtype = dtype, .gated = gated});
        const Tensor x = put(*device, x_values, s.m, s.k);
        Epilogue epilogue{.activation = Activation::kTanh, .accumulate = true, .scale = 0.7F};
        if (!gated) epilogue.bias = put(*device, bias_values, 1, s.n);
        const auto rows_at_once = [&](int64_t count) {
          const Tensor y = put(*device, y_values, s.m, s.n);
          for (int64_t row = 0; row < s.m; row += count) {
            const int64_t n = std::min(count, s.m - row);
            device->linear(x.rows(row, n), *weight, epilogue, y.rows(row, n));
          }
          return get(*device, y);
        };
        if (whole.empty()) whole = rows_at_once(kRows);
        for (int64_t count = 1; count <= kRows; ++count) {
          ASSERT_EQ(rows_at_once(count), whole) << count << " rows, " << name_of(isa);
        }
      }
    }
  }
}

TEST(CpuLinear, Float16OverflowNamesTheTensor) {
  std::vector<float> values(40, 1.0F);
  values[7] = -70000.0F;
  Stored w(values, 10, 4, DType::kFloat32);
  w.view.name = "encoder.block.0.wo.weight";
  const auto device = device_of(Isa::kAvx2);
  const size_t before = device->memory().used;
  try {
    device->pack({&w.view, 1}, {DType::kFloat16});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kFile);
    EXPECT_NE(std::string(error.what()).find("encoder.block.0.wo.weight"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("70000"), std::string::npos);
  }
  EXPECT_EQ(device->memory().used, before);
  values[7] = std::numeric_limits<float>::infinity();  // of the file, not of the rounding
  const Stored infinite(values, 10, 4, DType::kFloat32);
  EXPECT_NO_THROW(device->pack({&infinite.view, 1}, {DType::kFloat16}));
}

// The activations over their whole range, through a product with the number 1.
TEST(CpuLinear, ActivationsAreExactToTheLastBits) {
  std::vector<float> x;
  for (float v = -20.0F; v <= 20.0F; v += 0.00317F) x.push_back(v);
  for (const float v : {0.0F, -0.0F, 1e-30F, -1e-30F, 200.0F, -200.0F, 3e38F, -3e38F})
    x.push_back(v);
  const Stored one({1.0F}, 1, 1, DType::kFloat32);
  for (const Isa isa : isas()) {
    const auto device = device_of(isa);
    const auto weight = device->pack({&one.view, 1}, {DType::kFloat32});
    for (const Activation activation :
         {Activation::kRelu, Activation::kGeluTanh, Activation::kGeluErf, Activation::kSilu,
          Activation::kTanh, Activation::kGeluQuick}) {
      const auto rows = static_cast<int64_t>(x.size());
      const Tensor y = device->allocate(rows, 1);
      device->linear(put(*device, x, rows, 1), *weight, {activation}, y);
      const auto got = get(*device, y);
      for (size_t i = 0; i < x.size(); ++i) {
        const double want = activate(activation, x[i]);
        // Far below, 1 + tanh(u) cannot be had from tanh(u) even in double precision.
        const double floor = activation == Activation::kGeluTanh ? 1e-12 : 1e-36;
        // exp(1.702 x) takes over the rounding of its argument.
        const double rounding =
            activation == Activation::kGeluQuick ? 2e-7 * std::min(50.0F, std::fabs(x[i])) : 0;
        EXPECT_NEAR(got[i], want, (2e-6 + rounding) * std::fabs(want) + floor)
            << "activation " << static_cast<int>(activation) << " of " << x[i];
      }
    }
  }
}

TEST(CpuDevice, RowSumsUseSixteenLanesEverywhere) {
  for (const int64_t cols : {1, 7, 16, 40, 512, 1027}) {
    const auto x = numbers(static_cast<size_t>(9 * cols), 8);
    const auto w = numbers(static_cast<size_t>(cols), 9);
    std::vector<std::vector<float>> normed;
    std::vector<std::vector<float>> pooled;
    for (const Isa isa : isas()) {
      const auto device = device_of(isa, 2);
      const Tensor t = put(*device, x, 9, cols);
      device->rms_norm(t, put(*device, w, 1, cols), 1e-6F, t);
      normed.push_back(get(*device, t));
      const Tensor y = device->allocate(3, cols);
      device->pool(t, std::vector<int32_t>{0, 4, 4}, std::vector<int32_t>{4, 4, 9}, Pooling::kMean,
                   true, y);
      pooled.push_back(get(*device, y));
      EXPECT_EQ(normed.back(), normed.front());
      EXPECT_EQ(pooled.back(), pooled.front());
    }
    for (int64_t i = 0; i < 9; ++i) {
      double squares = 0;
      for (int64_t j = 0; j < cols; ++j)
        squares += std::pow(double{x[static_cast<size_t>(i * cols + j)]}, 2);
      const double factor = 1 / std::sqrt(squares / static_cast<double>(cols) + 1e-6);
      for (int64_t j = 0; j < cols; ++j) {
        const auto at = static_cast<size_t>(i * cols + j);
        EXPECT_NEAR(normed[0][at], x[at] * factor * w[static_cast<size_t>(j)], 1e-5);
      }
    }
    for (int64_t j = 0; j < cols; ++j) EXPECT_EQ(pooled[0][static_cast<size_t>(cols + j)], 0.0F);
  }
}

TEST(CpuDevice, KeepsMemoryForReuseWithinItsPeak) {
  const auto device = device_of(Isa::kAvx2);
  constexpr int64_t kRows = 4096;
  for (const int64_t cols : {1000, 900, 300, 1000, 2000, 70}) {
    const Tensor t = device->allocate(kRows, cols);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(t.row<float>(1)) % 64, 0U);
    EXPECT_NE(t.stride() * sizeof(float) % 4096, 0U);
    t.row<float>(kRows - 1)[cols - 1] = 1.0F;
  }
  EXPECT_EQ(device->memory().used, 0U);
  EXPECT_GE(device->memory().peak, kRows * 2000 * sizeof(float));
  EXPECT_LE(device->memory().peak, kRows * 2100 * sizeof(float));
  device->empty_cache();
  Tensor survivor;
  {
    const auto other = device_of(Isa::kAvx2);
    survivor = other->allocate(1000, 1000);
  }
  survivor.row<float>(999)[999] = 1.0F;  // a tensor may outlive its device
}

}  // namespace
}  // namespace quintet
