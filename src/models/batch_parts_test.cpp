#include "models/batch_parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace quintet {
namespace {

MicroBatch batch_of(const std::vector<int32_t>& lengths) {
  MicroBatch batch;
  batch.cu_seqlens.push_back(0);
  for (const int32_t n : lengths) {
    const int32_t begin = batch.cu_seqlens.back();
    for (int32_t i = 0; i < n; ++i) {
      batch.tokens.push_back(begin + i);
      batch.positions.push_back(i);
    }
    batch.cu_seqlens.push_back(begin + n);
    batch.ordinals.push_back(100 + batch.ordinals.size());
    batch.max_len = std::max(batch.max_len, n);
  }
  return batch;
}

std::vector<int64_t> rows_of_parts(const std::vector<int32_t>& lengths, int64_t wanted) {
  std::vector<int64_t> rows;
  for (const BatchPart& part : cut_batch(batch_of(lengths), wanted)) {
    rows.push_back(part.batch.n_tokens());
  }
  return rows;
}

using Rows = std::vector<int64_t>;

TEST(CutBatch, EvenWhereSequencesAllow) {
  EXPECT_EQ(rows_of_parts({100, 60, 100, 250}, 2), (Rows{260, 250}));
  EXPECT_EQ(rows_of_parts({200, 100, 212}, 2), (Rows{300, 212}));
  EXPECT_EQ(rows_of_parts({128, 128, 128, 128, 128, 128, 128, 128}, 4), (Rows{256, 256, 256, 256}));
}

TEST(CutBatch, WholeWhereItIsNotWorthWhile) {
  EXPECT_EQ(rows_of_parts({50, 50, 50}, 2), Rows());
  EXPECT_EQ(rows_of_parts({512}, 2), Rows());
  EXPECT_EQ(rows_of_parts({100, 156}, 1), Rows());
  EXPECT_EQ(rows_of_parts({2000, 1}, 2), Rows());
  EXPECT_EQ(rows_of_parts({1, 2000, 1}, 64), Rows());
  EXPECT_EQ(rows_of_parts(std::vector<int32_t>(64, 64), 64).size(), 4U);
}

TEST(CutBatch, PartsHoldTheSequencesInOrder) {
  const MicroBatch batch = batch_of({100, 60, 100, 250});
  const std::vector<BatchPart> parts = cut_batch(batch, 2);
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[0].first_row, 0);
  EXPECT_EQ(parts[1].first_row, 260);
  EXPECT_EQ(parts[0].batch.ordinals, (std::vector<uint64_t>{100, 101, 102}));
  EXPECT_EQ(parts[1].batch.ordinals, (std::vector<uint64_t>{103}));
  EXPECT_EQ(parts[0].batch.cu_seqlens, (std::vector<int32_t>{0, 100, 160, 260}));
  EXPECT_EQ(parts[1].batch.cu_seqlens, (std::vector<int32_t>{0, 250}));
  EXPECT_EQ(parts[1].batch.tokens.front(), 260);
  EXPECT_EQ(parts[1].batch.positions.front(), 0);
  EXPECT_EQ(parts[1].batch.max_len, 250);
}

}  // namespace
}  // namespace quintet
