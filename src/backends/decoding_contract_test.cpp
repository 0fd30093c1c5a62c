// The ops for decoding on every device named in QUINTET_TEST_DEVICES against the reference, at
// awkward sizes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "backends/cached_case.h"
#include "backends/contract.h"

namespace quintet {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class DecodingContract : public Contract {
 protected:
  // Runs `op(device) -> Tensor` on both, for the same bits.
  template <typename Op>
  void compare_bits(const Op& op) {
    EXPECT_EQ(get(*device_, op(*device_)), get(reference_, op(reference_)));
  }
};

TEST_P(DecodingContract, EmbeddingAdds) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
    for (const int64_t cols : {1, 7, 40, 513}) {
      const auto bytes = stored_as(dtype, numbers(static_cast<size_t>(11 * cols), 2));
      const std::vector<int32_t> ids = {10, 0, 3, 3, 9};
      compare_bits([&](Device& device) {
        const Tensor table = device.allocate(11, cols, dtype);
        device.upload(bytes.data(), table);
        const Tensor y = put(device, numbers(static_cast<size_t>(5 * cols), 3), 5, cols);
        device.embedding(ids, table, y, /*accumulate=*/true);
        return y;
      });
    }
  }
}

TEST_P(DecodingContract, LayerNorm) {
  for (const int64_t cols : {1, 5, 16, 33, 768, 1024}) {
    for (const int64_t rows : {0, 1, 2, 19}) {
      auto x = numbers(static_cast<size_t>(rows * cols), 3, 10);
      for (float& value : x) value += 30;  // the mean is not small
      const auto scale = numbers(static_cast<size_t>(cols), 4);
      const auto shift = numbers(static_cast<size_t>(cols), 5);
      compare([&](Device& device) {
        const Tensor y = put(device, x, rows, cols);
        device.layer_norm(y, put(device, scale, 1, cols), put(device, shift, 1, cols), 1e-5F,
                          y);  // in place
        return y;
      });
    }
  }
}

TEST_P(DecodingContract, LayerNormOfEqualNumbersIsTheBias) {
  const Tensor x = put(*device_, std::vector<float>(40, 3.0F), 2, 20);
  const auto shift = numbers(20, 6);
  device_->layer_norm(x, put(*device_, numbers(20, 7), 1, 20), put(*device_, shift, 1, 20), 1e-5F,
                      x);
  auto expected = shift;
  expected.insert(expected.end(), shift.begin(), shift.end());
  EXPECT_EQ(get(*device_, x), expected);
}

TEST_P(DecodingContract, CachedAttention) {
  for (const int64_t length : {1, 2, 24, 25, 130, 300}) {
    for (const bool bias : {false, true}) {
      for (const int64_t d_kv : {1, 5, 8, 20, 64}) {
        SCOPED_TRACE(testing::Message() << length << " " << d_kv << " " << bias);
        const CachedCase c{
            .length = length, .args = {.n_heads = 2, .d_kv = d_kv, .scale = 0.25F}, .bias = bias};
        expect_close(c.cached(*device_, true), c.cached(reference_, false));
      }
    }
  }
}

// Every number of keys around the borders of pages and key blocks.
TEST_P(DecodingContract, CachedAttentionHasTheBitsOfCausalAttention) {
  for (const int64_t d_kv : {3, 8, 16, 64, 128}) {
    for (const bool bias : {false, true}) {
      for (const float scale : {1.0F, 0.3F}) {
        SCOPED_TRACE(testing::Message() << d_kv << " " << bias << " " << scale);
        const CachedCase c{
            .length = 268, .args = {.n_heads = 2, .d_kv = d_kv, .scale = scale}, .bias = bias};
        const auto whole = c.whole(*device_);
        ASSERT_EQ(c.cached(*device_, true), whole);
        ASSERT_EQ(c.cached(*device_, false), whole);
        ASSERT_EQ(c.cached(reference_, true), c.whole(reference_));
      }
    }
  }
}

TEST_P(DecodingContract, CachedAttentionOfNoRowsIsNothing) {
  const auto cache = device_->make_kv_cache({2, 8}, 1);
  const Tensor q = device_->allocate(0, 16);
  device_->cached_attention(q, *cache, {}, {}, {.n_heads = 2, .d_kv = 8}, q);
  device_->kv_write(q, q, {}, *cache);
  device_->kv_copy({}, *cache);
}

// A beam's own last page behind pages that it shares, a page copied in part, a slot taken again,
// and rows that are not kept.
TEST_P(DecodingContract, PagesAreSharedCopiedAndTakenAgain) {
  const AttentionArgs args{.n_heads = 3, .d_kv = 5};
  const int64_t inner = args.n_heads * args.d_kv;
  compare([&](Device& device) {
    const auto cache = device.make_kv_cache({args.n_heads, args.d_kv}, 5);
    const int64_t n = 40;
    const Tensor k = put(device, numbers(static_cast<size_t>(n * inner), 31), n, inner);
    const Tensor v = put(device, numbers(static_cast<size_t>(n * inner), 32), n, inner);
    std::vector<int32_t> slots;  // pages 4 and 2; the last three rows nowhere
    for (int32_t i = 0; i < n; ++i) slots.push_back(i < kPageTokens ? 4 * kPageTokens + i : 24 + i);
    std::fill(slots.end() - 3, slots.end(), -1);
    device.kv_write(k, v, slots, *cache);
    const std::vector<PageCopy> copies = {{.from = 2, .to = 0, .n_tokens = 13},
                                          {.from = 0, .to = 3, .n_tokens = 13},
                                          {.from = 4, .to = 1}};
    device.kv_copy(copies, *cache);
    // The beams go on, each on its own page; page 3 first loses its last token.
    const std::vector<int32_t> next = {2 * 24 + 13, 0 * 24 + 13, 3 * 24 + 12};
    device.kv_write(k.rows(37, 3), v.rows(37, 3), next, *cache);
    const PageTable pages{.pages = {4, 2, 4, 0, 1, 3},
                          .begin = {0, 2, 4, 6},
                          .table = {2, 0, 1, 1, 0},
                          .n_keys = {37, 38, 38, 12, 24}};
    const Tensor q = put(device, numbers(static_cast<size_t>(5 * inner), 33), 5, inner);
    const Tensor y = device.allocate(5, inner);
    device.cached_attention(q, *cache, pages, {}, args, y);
    return y;
  });
}

TEST_P(DecodingContract, CachesAreCountedAndGivenBack) {
  device_->empty_cache();
  const size_t before = device_->memory().used;
  {
    const KvShape shape{.n_heads = 4, .d_kv = 32};
    const auto cache = device_->make_kv_cache(shape, 50);
    EXPECT_EQ(cache->n_pages(), 50);
    EXPECT_EQ(cache->shape().d_kv, 32);
    const auto bytes = static_cast<size_t>(50 * shape.bytes_per_page());
    EXPECT_GE(cache->bytes(), bytes);
    EXPECT_GE(device_->memory().used, before + bytes);
    EXPECT_LE(device_->memory().used, before + bytes + 4096);
  }
  EXPECT_EQ(device_->memory().used, before);
}

TEST_P(DecodingContract, CachesThatDoNotFitAreAnError) {
  try {
    device_->make_kv_cache({.n_heads = 1024, .d_kv = 1024}, 1 << 26);
    FAIL() << "12 PiB were had";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kMemory) << error.what();
  }
}

TEST_P(DecodingContract, LogSoftmax) {
  for (const int64_t cols : {1, 2, 16, 37, 8191, 8192, 50257}) {
    for (const int64_t rows : {0, 1, 5}) {
      auto x = numbers(static_cast<size_t>(rows * cols), 41, 4);
      for (float& value : x) value += 40;
      compare([&](Device& device) {
        const Tensor y = put(device, x, rows, cols);
        device.log_softmax(y);
        return y;
      });
    }
  }
}

TEST_P(DecodingContract, LogSoftmaxRowsDoNotSeeEachOther) {
  constexpr int64_t kRows = 7;
  constexpr int64_t kCols = 20011;
  const Tensor whole = put(*device_, numbers(kRows * kCols, 42), kRows, kCols);
  const Tensor parts = put(*device_, numbers(kRows * kCols, 42), kRows, kCols);
  device_->log_softmax(whole);
  for (int64_t row = 0; row < kRows; ++row) device_->log_softmax(parts.rows(row, 1));
  EXPECT_EQ(get(*device_, parts), get(*device_, whole));
}

TEST_P(DecodingContract, LogSoftmaxOfBannedAndLargeNumbers) {
  const Tensor x = put(*device_, {-kInfinity, 3e38F, -3e38F, 3e38F}, 1, 4);
  device_->log_softmax(x);
  const auto y = get(*device_, x);
  EXPECT_EQ(y[0], -kInfinity);
  EXPECT_FLOAT_EQ(y[1], -0.69314718F);
  EXPECT_EQ(y[2], -kInfinity);
  EXPECT_FLOAT_EQ(y[3], -0.69314718F);
}

TEST_P(DecodingContract, EditsHappenInTheirOrder) {
  using Kind = LogitEdit::Kind;
  const std::vector<LogitEdit> edits = {
      {.kind = Kind::kPenalise, .row = 0, .token = 3, .value = 1.3F},
      {.kind = Kind::kPenalise, .row = 0, .token = 3, .value = 1.3F},
      {.kind = Kind::kPenalise, .row = 2, .token = 16, .value = 1.3F},
      {.kind = Kind::kSet, .row = 1, .token = 5, .value = 9},
      {.kind = Kind::kFillRow, .row = 1, .token = -1, .value = -7},
      {.kind = Kind::kSet, .row = 1, .token = 6, .value = 2},
      {.kind = Kind::kSet, .row = 2, .token = 0, .value = 4},
      {.kind = Kind::kPenalise, .row = 2, .token = 0, .value = 2}};
  compare_bits([&](Device& device) {
    const Tensor x = put(device, numbers(3 * 17, 43), 3, 17);
    device.edit(edits, x);
    device.edit({}, x);
    return x;
  });
}

// Rows with few different numbers, so that there are many equals, and with NaN and infinities.
std::vector<float> numbers_to_choose_from(int64_t n, uint32_t seed, bool strange) {
  std::mt19937 random(seed);
  std::vector<float> values(static_cast<size_t>(n));
  for (float& value : values) {
    value = static_cast<float>(static_cast<int>(random() % 600) - 300) / 8;
    if (!strange) continue;
    const uint32_t kind = random() % 8;
    if (kind == 0) value = kNan;
    if (kind == 1) value = -kInfinity;
    if (kind == 2) value = -0.0F;
    if (kind == 3) value = 0.0F;
    if (kind == 4 && random() % 64 == 0) value = kInfinity;
  }
  return values;
}

TEST_P(DecodingContract, TopK) {
  for (const bool strange : {false, true}) {
    for (const int64_t cols : {1, 5, 33, 1000, 50257}) {
      for (const int64_t k : {int64_t{1}, int64_t{2}, int64_t{50}, int64_t{300}, cols - 1, cols}) {
        if (k < 1 || k > cols) continue;
        SCOPED_TRACE(testing::Message() << strange << " " << cols << " " << k);
        constexpr int64_t kRows = 3;
        const auto values = numbers_to_choose_from(kRows * cols, 44, strange);
        std::vector<int32_t> ids[2];
        std::vector<float> best[2];
        int which = 0;
        for (Device* device : {device_.get(), static_cast<Device*>(&reference_)}) {
          ids[which].resize(static_cast<size_t>(kRows * k));
          best[which].resize(static_cast<size_t>(kRows * k));
          device->top_k(put(*device, values, kRows, cols), k, ids[which], best[which]);
          ++which;
        }
        EXPECT_EQ(ids[0], ids[1]);
        for (size_t i = 0; i < best[0].size(); ++i) {
          ASSERT_TRUE(best[0][i] == best[1][i] ||
                      (std::isnan(best[0][i]) && std::isnan(best[1][i])))
              << i;
        }
      }
    }
  }
}

TEST_P(DecodingContract, TopKOfRowsWithoutNumbers) {
  const Tensor x = put(*device_, {kNan, kNan, kNan, -kInfinity, kNan, -kInfinity}, 2, 3);
  std::vector<int32_t> ids(4);
  std::vector<float> values(4);
  device_->top_k(x, 2, ids, values);
  EXPECT_EQ(ids, (std::vector<int32_t>{0, 1, 0, 2}));
  EXPECT_TRUE(std::isnan(values[0]) && std::isnan(values[1]));
  EXPECT_EQ(values[2], -kInfinity);
  EXPECT_EQ(values[3], -kInfinity);
  device_->top_k(device_->allocate(0, 3), 2, {}, {});
}

TEST_P(DecodingContract, PickTakesSingleNumbers) {
  const auto values = numbers(4 * 9, 45);
  const Tensor x = put(*device_, values, 4, 9);
  const std::vector<int32_t> rows = {3, 0, 0, 2};
  const std::vector<int32_t> columns = {8, 0, 0, 5};
  std::vector<float> picked(4);
  device_->pick(x, rows, columns, picked);
  EXPECT_EQ(picked, (std::vector<float>{values[35], values[0], values[0], values[23]}));
  device_->pick(x, {}, {}, {});
}

INSTANTIATE_TEST_SUITE_P(Devices, DecodingContract, testing::ValuesIn(test_devices()),
                         name_of_device);

}  // namespace
}  // namespace quintet
