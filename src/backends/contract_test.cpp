// Every op on every device named in QUINTET_TEST_DEVICES (default cpu:0, opencl:0 and a part of it)
// against the reference, at awkward sizes. A device that is not there is a visible skip.
#include "backends/contract.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace quintet {
namespace {

TEST_P(Contract, UploadAndDownloadKeepEveryBit) {
  for (const int64_t cols : {1, 3, 17, 1000}) {
    const auto values = numbers(static_cast<size_t>(5 * cols), 1);
    EXPECT_EQ(get(*device_, put(*device_, values, 5, cols)), values);
    const Tensor whole = put(*device_, values, 5, cols);
    const Tensor part = whole.rows(1, 2).columns(cols / 2, 1);
    EXPECT_EQ(get(*device_, part),
              (std::vector<float>{values[static_cast<size_t>(cols + cols / 2)],
                                  values[static_cast<size_t>(2 * cols + cols / 2)]}));
  }
  EXPECT_TRUE(device_->allocate(0, 8).empty());
}

TEST_P(Contract, MemoryIsCountedAndGivenBack) {
  const size_t before = device_->memory().used;
  {
    const Tensor tensor = device_->allocate(1000, 1000);
    EXPECT_GE(device_->memory().used, before + 4000000);
    EXPECT_LE(device_->memory().used, before + 4400000);
  }
  device_->empty_cache();
  EXPECT_EQ(device_->memory().used, before);
  EXPECT_GE(device_->memory().peak, before + 4000000);
}

TEST_P(Contract, EmbeddingCopiesRows) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
    for (const int64_t cols : {1, 7, 40, 513}) {
      const auto bytes = stored_as(dtype, numbers(static_cast<size_t>(11 * cols), 2));
      const std::vector<int32_t> ids = {10, 0, 3, 3, 9};
      const auto op = [&](Device& device) {
        const Tensor table = device.allocate(11, cols, dtype);
        device.upload(bytes.data(), table);
        const Tensor y = device.allocate(5, cols);
        device.embedding(ids, table, y);
        return y;
      };
      EXPECT_EQ(get(*device_, op(*device_)), get(reference_, op(reference_)));
    }
  }
}

TEST_P(Contract, RmsNorm) {
  for (const int64_t cols : {1, 5, 16, 33, 1024}) {
    for (const int64_t rows : {1, 2, 19}) {
      const auto x = numbers(static_cast<size_t>(rows * cols), 3, 100);
      const auto scale = numbers(static_cast<size_t>(cols), 4);
      compare([&](Device& device) {
        const Tensor y = put(device, x, rows, cols);
        device.rms_norm(y, put(device, scale, 1, cols), 1e-6F, y);  // in place
        return y;
      });
    }
  }
}

TEST_P(Contract, RmsNormOfZerosIsZero) {
  const Tensor x = put(*device_, std::vector<float>(40), 2, 20);
  const Tensor weight = put(*device_, std::vector<float>(20, 1), 1, 20);
  device_->rms_norm(x, weight, 1e-6F, x);
  EXPECT_EQ(get(*device_, x), std::vector<float>(40));
}

struct LinearShape {
  int64_t rows;
  int64_t d_in;
  int64_t d_out;
};

// x [rows, d_in], weight in two parts where gated, y holding numbers to add to.
Tensor run_linear(Device& device, LinearShape shape, DType stored, PackOptions options,
                  Epilogue epilogue) {
  const int64_t rows = options.gated ? 2 * shape.d_out : shape.d_out;
  const auto n = static_cast<size_t>(rows * shape.d_in);
  const auto bytes = stored_as(stored, numbers(n, 5, 0.3F));
  std::vector<HostView> parts;
  const int64_t n_parts = options.gated ? 2 : 1;
  for (int64_t part = 0; part < n_parts; ++part) {
    HostView view{.name = "w", .data = bytes.data(), .dtype = stored, .shape = {}};
    view.shape = {rows / n_parts, shape.d_in};
    view.data += static_cast<size_t>(part) * bytes.size() / static_cast<size_t>(n_parts);
    parts.push_back(view);
  }
  const auto weight = device.pack(parts, options);
  EXPECT_EQ(weight->d_out(), shape.d_out);
  EXPECT_EQ(weight->d_in(), shape.d_in);
  EXPECT_EQ(weight->gated(), options.gated);
  EXPECT_EQ(weight->dtype(), options.dtype);
  const auto x = numbers(static_cast<size_t>(shape.rows * shape.d_in), 6);
  const auto y = numbers(static_cast<size_t>(shape.rows * shape.d_out), 7);
  Tensor x_tensor = device.allocate(shape.rows, shape.d_in);
  Tensor y_tensor = device.allocate(shape.rows, shape.d_out);
  device.upload(x.data(), x_tensor);
  device.upload(y.data(), y_tensor);
  device.linear(x_tensor, *weight, epilogue, y_tensor);
  device.wait();
  return y_tensor;
}

TEST_P(Contract, LinearAtOddSizes) {
  for (const LinearShape shape : {LinearShape{1, 1, 1},
                                  {1, 7, 3},
                                  {2, 16, 17},
                                  {13, 33, 100},
                                  {70, 129, 31},
                                  {7, 400, 65},
                                  {25, 1000, 48},
                                  {150, 64, 200},
                                  {1, 1024, 512}}) {
    SCOPED_TRACE(testing::Message() << shape.rows << " " << shape.d_in << " " << shape.d_out);
    for (const bool accumulate : {false, true}) {
      compare([&](Device& device) {
        return run_linear(device, shape, DType::kFloat32, {}, {.accumulate = accumulate});
      });
    }
  }
}

TEST_P(Contract, LinearInEveryDType) {
  for (const DType stored : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
    for (const DType packed : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
      for (const bool gated : {false, true}) {
        compare([&](Device& device) {
          return run_linear(device, {19, 45, 37}, stored, {.dtype = packed, .gated = gated}, {});
        });
      }
    }
  }
}

TEST_P(Contract, LinearWithEveryActivation) {
  for (const Activation activation :
       {Activation::kNone, Activation::kRelu, Activation::kGeluTanh, Activation::kGeluErf,
        Activation::kSilu, Activation::kTanh, Activation::kGeluQuick}) {
    SCOPED_TRACE(static_cast<int>(activation));
    for (const bool gated : {false, true}) {
      for (const bool accumulate : {false, true}) {
        compare([&](Device& device) {
          return run_linear(device, {9, 24, 50}, DType::kFloat32, {.gated = gated},
                            {.activation = activation, .accumulate = accumulate});
        });
      }
    }
  }
}

// activation(scale * sum + bias), at sizes that leave parts of panels, by both kernels.
TEST_P(Contract, LinearScalesAndAddsABias) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
    for (const LinearShape shape :
         {LinearShape{1, 1, 1}, {1, 40, 33}, {3, 300, 31}, {29, 513, 50}, {64, 20, 97}}) {
      SCOPED_TRACE(testing::Message() << shape.rows << " " << shape.d_in << " " << shape.d_out);
      const auto bias = numbers(static_cast<size_t>(shape.d_out), 13, 3);
      const auto run = [&](Epilogue epilogue, bool with_bias, bool gated) {
        compare([&](Device& device) {
          if (with_bias) epilogue.bias = put(device, bias, 1, shape.d_out);
          return run_linear(device, shape, DType::kFloat32, {.dtype = dtype, .gated = gated},
                            epilogue);
        });
      };
      run({}, true, false);
      run({.activation = Activation::kGeluTanh, .accumulate = true}, true, false);
      run({.activation = Activation::kTanh, .scale = 0.3F}, true, false);
      run({.accumulate = true, .scale = -2.5F}, false, false);
      run({.activation = Activation::kSilu, .scale = 0.7F}, false, true);
    }
  }
}

std::vector<std::byte> transposed(const std::vector<std::byte>& bytes, int64_t rows, int64_t cols) {
  const size_t size = bytes.size() / static_cast<size_t>(rows * cols);
  std::vector<std::byte> to(bytes.size());
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < cols; ++j) {
      std::memcpy(to.data() + static_cast<size_t>(j * rows + i) * size,
                  bytes.data() + static_cast<size_t>(i * cols + j) * size, size);
    }
  }
  return to;
}

struct Matrix {
  std::vector<std::byte> bytes;
  HostView view;

  Matrix(DType dtype, std::vector<std::byte> values, int64_t rows, int64_t cols)
      : bytes(std::move(values)),
        view{.name = "w", .data = bytes.data(), .dtype = dtype, .shape = {rows, cols}} {}
};

// A matrix that lies transposed gives the same weight as its rows do, whole and in parts.
TEST_P(Contract, PacksTransposedMatrices) {
  for (const DType stored : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
    for (const DType packed : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
      for (const LinearShape shape : {LinearShape{2, 1, 1}, {3, 70, 45}, {9, 300, 101}}) {
        const auto n = static_cast<size_t>(shape.d_in * shape.d_out);
        const Matrix rows(stored, stored_as(stored, numbers(n, 14)), shape.d_out, shape.d_in);
        const Matrix columns(stored, transposed(rows.bytes, shape.d_out, shape.d_in), shape.d_in,
                             shape.d_out);
        const auto x = put(*device_, numbers(static_cast<size_t>(shape.rows * shape.d_in), 15),
                           shape.rows, shape.d_in);
        const auto product = [&](const std::vector<HostView>& parts, const PackOptions& options) {
          const auto weight = device_->pack(parts, options);
          const Tensor y = device_->allocate(shape.rows, weight->d_out());
          device_->linear(x, *weight, {.activation = Activation::kGeluErf}, y);
          return get(*device_, y);
        };
        const auto part = [&](int64_t first, int64_t count) {
          HostView view = rows.view;
          view.data = rows.view.row(first);
          view.shape[0] = count;
          return view;
        };
        const PackOptions all{.dtype = packed, .transposed = true};
        EXPECT_EQ(product({columns.view}, all), product({rows.view}, {.dtype = packed}));
        EXPECT_EQ(product({columns.view, columns.view}, all),
                  product({rows.view, rows.view}, {.dtype = packed}));
        EXPECT_EQ(product({columns.view, columns.view},
                          {.dtype = packed, .gated = true, .transposed = true}),
                  product({rows.view, rows.view}, {.dtype = packed, .gated = true}));
        const int64_t first = shape.d_out / 3;
        const int64_t count = (shape.d_out + 1) / 2;
        const HostView wanted = part(first, count);
        const HostView tail = part(first, shape.d_out - first);
        EXPECT_EQ(
            product(
                {columns.view, columns.view},
                {.dtype = packed, .transposed = true, .first_column = first, .n_columns = count}),
            product({wanted, wanted}, {.dtype = packed}));
        EXPECT_EQ(
            product({columns.view}, {.dtype = packed, .transposed = true, .first_column = first}),
            product({tail}, {.dtype = packed}));
      }
    }
  }
}

TEST_P(Contract, TransposedWeightsEqualTheReference) {
  const LinearShape shape{5, 60, 77};
  const Matrix w(DType::kFloat16,
                 stored_as(DType::kFloat16, numbers(static_cast<size_t>(60 * 77), 16)), 60, 77);
  compare([&](Device& device) {
    const auto weight = device.pack(
        {&w.view, 1},
        {.dtype = DType::kBFloat16, .transposed = true, .first_column = 7, .n_columns = 50});
    const Tensor y = device.allocate(shape.rows, 50);
    device.linear(put(device, numbers(static_cast<size_t>(5 * 60), 17), 5, 60), *weight, {}, y);
    return y;
  });
}

TEST_P(Contract, WeightRowsAreThoseOfTheMatrix) {
  for (const DType packed : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
    for (const LinearShape shape : {LinearShape{0, 1, 1}, {0, 7, 40}, {0, 513, 69}}) {
      const auto values = numbers(static_cast<size_t>(shape.d_in * shape.d_out), 18);
      const auto last = static_cast<int32_t>(shape.d_out - 1);
      const std::vector<int32_t> ids = {last, 0, last / 2, last / 3, last, 16 % (last + 1)};
      const auto op = [&](Device& device) {
        const Matrix w(DType::kFloat32, stored_as(DType::kFloat32, values), shape.d_out,
                       shape.d_in);
        const auto weight = device.pack({&w.view, 1}, {.dtype = packed});
        const Tensor y = device.allocate(static_cast<int64_t>(ids.size()), shape.d_in);
        device.weight_rows(ids, *weight, y);
        return y;
      };
      EXPECT_EQ(get(*device_, op(*device_)), get(reference_, op(reference_)));
    }
  }
}

// Sums beyond float16's range are finite: only the weights are narrow.
TEST_P(Contract, LinearOfFloat16WeightsSumsInFloat32) {
  const std::vector<float> large(64, 60000.0F);
  const auto bytes = stored_as(DType::kFloat16, large);
  const HostView view{
      .name = "w", .data = bytes.data(), .dtype = DType::kFloat16, .shape = {1, 64}};
  const auto weight = device_->pack({&view, 1}, {.dtype = DType::kFloat16});
  const Tensor y = device_->allocate(1, 1);
  device_->linear(put(*device_, std::vector<float>(64, 1), 1, 64), *weight, {}, y);
  // 60000 is exact in float16
  EXPECT_FLOAT_EQ(get(*device_, y)[0], 64 * 60000.0F);
}

TEST_P(Contract, LinearRowsDoNotSeeEachOther) {
  const LinearShape shape{37, 100, 70};
  const auto w = numbers(static_cast<size_t>(shape.d_in * shape.d_out), 8);
  const HostView view{.name = "w",
                      .data = reinterpret_cast<const std::byte*>(w.data()),
                      .dtype = DType::kFloat32,
                      .shape = {shape.d_out, shape.d_in}};
  const auto weight = device_->pack({&view, 1}, {});
  const Tensor x = put(*device_, numbers(static_cast<size_t>(shape.rows * shape.d_in), 9),
                       shape.rows, shape.d_in);
  const Tensor whole = device_->allocate(shape.rows, shape.d_out);
  const Tensor tiled = device_->allocate(shape.rows, shape.d_out);
  device_->linear(x, *weight, {}, whole);
  for (int64_t row = 0; row < shape.rows; row += 5) {
    const int64_t count = std::min<int64_t>(5, shape.rows - row);
    device_->linear(x.rows(row, count), *weight, {}, tiled.rows(row, count));
  }
  EXPECT_EQ(get(*device_, tiled), get(*device_, whole));
}

struct AttentionCase {
  std::vector<int> lengths;
  AttentionArgs args;
  bool holes = false;
  bool bias = true;
  int64_t tile = 0;  // rows per call; 0: all at once
};

// Q, K, V are columns of one tensor, as a stacked product leaves them.
Tensor run_attention(Device& device, const AttentionCase& c) {
  const MicroBatch batch = make_batch(c.lengths, c.holes);
  const int64_t n = batch.n_tokens();
  const int64_t inner = c.args.n_heads * c.args.d_kv;
  const int64_t m = batch.max_len + 5;
  const auto qkv = numbers(static_cast<size_t>(n * 3 * inner), 10);
  const auto table = numbers(static_cast<size_t>(c.args.n_heads * (2 * m - 1)), 11);
  const Tensor all = device.allocate(n, 3 * inner);
  device.upload(qkv.data(), all);
  Tensor bias;
  if (c.bias) {
    bias = device.allocate(c.args.n_heads, 2 * m - 1);
    device.upload(table.data(), bias);
  }
  Tensor y = device.allocate(n, inner);
  const int64_t tile = c.tile == 0 ? std::max<int64_t>(n, 1) : c.tile;
  for (int64_t row = 0; row < n; row += tile) {
    const int64_t count = std::min(tile, n - row);
    device.attention(all.columns(0, inner).rows(row, count), all.columns(inner, inner),
                     all.columns(2 * inner, inner), bias, batch, row, c.args, y.rows(row, count));
  }
  device.wait();
  return y;
}

TEST_P(Contract, Attention) {
  const AttentionArgs heads{.n_heads = 3, .d_kv = 8};
  const std::vector<AttentionCase> cases = {
      {.lengths = {1}, .args = {.n_heads = 1, .d_kv = 1}},
      {.lengths = {1, 1, 1}, .args = heads},
      {.lengths = {5, 1, 17, 2}, .args = heads},
      {.lengths = {5, 0, 17}, .args = heads},
      {.lengths = {9, 20}, .args = {.n_heads = 2, .d_kv = 5, .scale = 0.3F}, .holes = true},
      {.lengths = {9, 20}, .args = heads, .bias = false},
      {.lengths = {70, 3}, .args = {.n_heads = 2, .d_kv = 64, .scale = 0.125F}, .tile = 7},
      {.lengths = {33, 40}, .args = {.n_heads = 2, .d_kv = 16, .causal = true}, .tile = 16},
      {.lengths = {33},
       .args = {.n_heads = 1, .d_kv = 128, .scale = 0.1F, .causal = true},
       .holes = true},
  };
  for (size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(i);
    compare([&](Device& device) { return run_attention(device, cases[i]); });
  }
}

TEST_P(Contract, AttentionOverALongSequence) {
  compare([](Device& device) {
    return run_attention(
        device,
        {.lengths = {1500, 11}, .args = {.n_heads = 1, .d_kv = 16, .scale = 0.5F}, .tile = 512});
  });
}

TEST_P(Contract, AttentionInTilesAndInCompanyHasTheSameBits) {
  AttentionCase c{.lengths = {300, 7, 90}, .args = {.n_heads = 2, .d_kv = 24}};
  const auto whole = get(*device_, run_attention(*device_, c));
  for (const int64_t tile : {1, 13, 256}) {
    c.tile = tile;
    EXPECT_EQ(get(*device_, run_attention(*device_, c)), whole) << tile;
  }
}

// Scores far beyond exp's range: the largest one takes all. A score near 1000 is rounded by up to
// 3e-5 in float32, and its share moves by as much, relatively.
TEST_P(Contract, AttentionWithLargeScoresIsFinite) {
  constexpr double kRounding = 1e-4;
  compare(
      [](Device& device) {
        return run_attention(device,
                             {.lengths = {50}, .args = {.n_heads = 1, .d_kv = 32, .scale = 50}});
      },
      kRounding);
}

TEST_P(Contract, Pool) {
  const std::vector<int32_t> begin = {0, 3, 3, 10};
  const std::vector<int32_t> end = {3, 3, 10, 11};
  for (const int64_t cols : {1, 9, 130}) {
    for (const Pooling pooling : {Pooling::kMean, Pooling::kFirst, Pooling::kLast}) {
      for (const bool normalize : {false, true}) {
        compare([&](Device& device) {
          const Tensor x = put(device, numbers(static_cast<size_t>(11 * cols), 12), 11, cols);
          const Tensor y = device.allocate(4, cols);
          device.pool(x, begin, end, pooling, normalize, y);
          return y;
        });
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Contract, testing::ValuesIn(test_devices()), name_of_device);

}  // namespace
}  // namespace quintet
