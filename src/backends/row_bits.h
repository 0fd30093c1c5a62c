// The row by row ops and the choice of tokens on a device and on the CPU backend: the same bits, at
// awkward sizes and on views.
#ifndef QUINTET_BACKENDS_ROW_BITS_H_
#define QUINTET_BACKENDS_ROW_BITS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "backends/contract.h"
#include "backends/device.h"

namespace quintet::row_bits {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
inline constexpr int64_t kWidths[] = {1, 5, 15, 16, 17, 31, 32, 100, 512, 1000, 1024};

inline std::vector<float> contents(Device& device, const Tensor& tensor) {
  device.wait();
  std::vector<float> values(static_cast<size_t>(tensor.rows() * tensor.cols()));
  device.download(tensor, values.data());
  return values;
}

// Runs `op(device) -> Tensor` on both. A NaN equals a NaN.
template <typename Op>
void compare_bits(Device& tested, Device& cpu, const Op& op) {
  const std::vector<float> got = contents(tested, op(tested));
  const std::vector<float> want = contents(cpu, op(cpu));
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(want[i]) && std::isnan(got[i])) continue;
    ASSERT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(want[i]))
        << "element " << i << ": " << got[i] << ", " << want[i];
  }
}

inline Tensor put(Device& device, const std::vector<float>& values, int64_t rows, int64_t cols) {
  const Tensor tensor = device.allocate(rows, cols);
  device.upload(values.data(), tensor);
  return tensor;
}

// Rows [1, 1 + rows) and columns [3, 3 + cols) of a larger tensor.
inline Tensor put_view(Device& device, const std::vector<float>& values, int64_t rows,
                       int64_t cols) {
  const Tensor view = device.allocate(rows + 2, cols + 8).rows(1, rows).columns(3, cols);
  device.upload(values.data(), view);
  return view;
}

inline std::vector<float> numbers_of(int64_t n, uint32_t seed, float scale = 1) {
  return numbers(static_cast<size_t>(n), seed, scale);
}

inline void embedding_bits(Device& tested, Device& cpu) {
  const std::vector<int32_t> ids = {10, 0, 3, 3, 9};
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
    for (const int64_t cols : kWidths) {
      for (const bool accumulate : {false, true}) {
        auto table_numbers = numbers_of(11 * cols, 2, 1e-3F);  // of float16 some are subnormal
        table_numbers[0] = kInfinity;
        table_numbers[static_cast<size_t>(9 * cols)] = -0.0F;
        table_numbers[static_cast<size_t>(3 * cols)] = 3e-8F;
        const auto bytes = stored_as(dtype, table_numbers);
        compare_bits(tested, cpu, [&](Device& device) {
          const Tensor table = device.allocate(12, cols, dtype).rows(1, 11);
          device.upload(bytes.data(), table);
          const Tensor y = put_view(device, numbers_of(5 * cols, 3), 5, cols);
          device.embedding(ids, table, y, accumulate);
          return y;
        });
      }
    }
  }
}

inline void norms_bits(Device& tested, Device& cpu) {
  for (const int64_t cols : kWidths) {
    for (const int64_t rows : {1, 2, 9, 33}) {
      auto x = numbers_of(rows * cols, 4, 30);
      for (float& value : x) value += 20;
      const auto scale = numbers_of(cols, 5);
      const auto shift = numbers_of(cols, 6);
      for (const bool in_place : {false, true}) {
        compare_bits(tested, cpu, [&](Device& device) {
          const Tensor from = put_view(device, x, rows, cols);
          const Tensor y = in_place ? from : device.allocate(rows, cols);
          device.rms_norm(from, put(device, scale, 1, cols), 1e-6F, y);
          return y;
        });
        compare_bits(tested, cpu, [&](Device& device) {
          const Tensor from = put_view(device, x, rows, cols);
          const Tensor y = in_place ? from : device.allocate(rows, cols);
          device.layer_norm(from, put(device, scale, 1, cols), put(device, shift, 1, cols), 1e-5F,
                            y);
          return y;
        });
      }
    }
  }
}

inline void pool_bits(Device& tested, Device& cpu) {
  const std::vector<int32_t> begin = {0, 5, 5, 38, 7};
  const std::vector<int32_t> end = {5, 38, 5, 39, 9};
  for (const int64_t cols : kWidths) {
    for (const Pooling pooling : {Pooling::kMean, Pooling::kFirst, Pooling::kLast}) {
      for (const bool normalize : {false, true}) {
        auto x = numbers_of(39 * cols, 7);
        std::fill(x.begin() + 7 * cols, x.begin() + 9 * cols, 0.0F);  // has no length
        compare_bits(tested, cpu, [&](Device& device) {
          const Tensor y = device.allocate(5, cols);
          device.pool(put_view(device, x, 39, cols), begin, end, pooling, normalize, y);
          return y;
        });
      }
    }
  }
}

inline void log_softmax_bits(Device& tested, Device& cpu) {
  for (const int64_t cols : {1, 2, 17, 1000, 8192, 8193, 32128, 50257, 250112}) {
    for (const int64_t rows : {1, 3}) {
      compare_bits(tested, cpu, [&](Device& device) {
        const Tensor x = put_view(device, numbers_of(rows * cols, 8, 5), rows, cols);
        device.log_softmax(x);
        return x;
      });
    }
  }
}

inline void log_softmax_of_strange_numbers_bits(Device& tested, Device& cpu) {
  const std::vector<float> values = {
      -kInfinity, 3e38F,      -3e38F,    2,     2,      2,     kNan, 1,     2,  // a NaN
      -kInfinity, -kInfinity, kInfinity, 1e-8F, -1e-8F, -0.0F, 700,  -0.0F, -700};
  compare_bits(tested, cpu, [&](Device& device) {
    const Tensor x = put_view(device, values, 6, 3);
    device.log_softmax(x);
    return x;
  });
}

inline void edit_bits(Device& tested, Device& cpu) {
  using Kind = LogitEdit::Kind;
  constexpr int64_t kCols = 1003;
  std::mt19937 random(9);
  std::vector<LogitEdit> edits;
  for (int i = 0; i < 500; ++i) {
    LogitEdit edit{.kind = i % 90 == 60 ? Kind::kFillRow
                           : i % 3 == 0 ? Kind::kSet
                                        : Kind::kPenalise};
    edit.row = static_cast<int32_t>(random() % 5);
    edit.token = static_cast<int32_t>(random() % (i % 2 == 0 ? 7 : kCols));  // some again and again
    edit.value = edit.kind == Kind::kPenalise ? 1.3F : static_cast<float>(i) - 250.0F;
    if (i % 50 == 0) edit.value = -kInfinity;
    edits.push_back(edit);
  }
  compare_bits(tested, cpu, [&](Device& device) {
    const Tensor x = put_view(device, numbers_of(6 * kCols, 10), 6, kCols);
    device.edit(edits, x);
    return x;
  });
}

// Rows of few different numbers among which are NaN, infinities and both zeros.
inline void top_k_bits(Device& tested, Device& cpu) {
  for (const int64_t cols : {3, 40, 5000, 250112}) {
    auto values = numbers_of(2 * cols, 11, 20);
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = std::round(values[i]);
      if (i % 100 == 7) values[i] = kNan;
      if (i % 100 == 8) values[i] = -kInfinity;
      if (i % 1000 == 9) values[i] = kInfinity;
      if (i % 10 == 3) values[i] = -0.0F;
    }
    for (const int64_t k : {int64_t{1}, int64_t{4}, int64_t{50}, int64_t{256}, int64_t{257},
                            cols / 3, cols - 1, cols}) {
      if (k < 1 || k > cols) continue;
      SCOPED_TRACE(testing::Message() << cols << " " << k);
      std::vector<int32_t> ids[2];
      std::vector<float> best[2];
      for (const int which : {0, 1}) {
        Device& device = which == 0 ? tested : cpu;
        ids[which].resize(static_cast<size_t>(2 * k));
        best[which].resize(static_cast<size_t>(2 * k));
        device.top_k(put_view(device, values, 2, cols), k, ids[which], best[which]);
      }
      ASSERT_EQ(ids[0], ids[1]);
      for (size_t i = 0; i < best[0].size(); ++i) {
        if (std::isnan(best[0][i]) && std::isnan(best[1][i])) continue;
        ASSERT_EQ(std::bit_cast<uint32_t>(best[0][i]), std::bit_cast<uint32_t>(best[1][i])) << i;
      }
    }
  }
}

inline void pick_bits(Device& tested, Device& cpu) {
  const std::vector<int32_t> rows = {4, 0, 0, 2, 3};
  const std::vector<int32_t> columns = {8, 0, 99, 50, 50};
  const auto values = numbers_of(5 * 100, 12);
  for (Device* device : {&tested, &cpu}) {
    std::vector<float> picked(5);
    device->pick(put_view(*device, values, 5, 100), rows, columns, picked);
    EXPECT_EQ(picked,
              (std::vector<float>{values[408], values[0], values[99], values[250], values[350]}));
  }
}

struct Case {
  const char* name;
  void (*run)(Device& tested, Device& cpu);
};

inline const std::vector<Case>& cases() {
  static const std::vector<Case> kCases = {
      {"Embedding", &embedding_bits},
      {"Norms", &norms_bits},
      {"Pool", &pool_bits},
      {"LogSoftmax", &log_softmax_bits},
      {"LogSoftmaxOfStrangeNumbers", &log_softmax_of_strange_numbers_bits},
      {"Edit", &edit_bits},
      {"TopK", &top_k_bits},
      {"Pick", &pick_bits},
  };
  return kCases;
}

inline std::string name_of_case(const testing::TestParamInfo<Case>& info) {
  return info.param.name;
}

}  // namespace quintet::row_bits

#endif  // QUINTET_BACKENDS_ROW_BITS_H_
