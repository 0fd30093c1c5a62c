// Properties of packing, over random lengths: everything exactly once, the budget, the window,
// balance, determinism.
#include "batch/packer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "quintet/error.h"

namespace quintet {
namespace {

Sequence make_sequence(uint64_t ordinal, int64_t length) {
  Sequence sequence;
  sequence.ordinal = ordinal;
  sequence.tokens.resize(static_cast<size_t>(length));
  std::iota(sequence.tokens.begin(), sequence.tokens.end(), static_cast<int32_t>(ordinal * 1000));
  sequence.pool_end = static_cast<int32_t>(length);
  return sequence;
}

// Drains after each push, as the engine does, or only after finish().
std::vector<MicroBatch> pack(const std::vector<int64_t>& lengths, PackerOptions options,
                             bool drain_early = true) {
  Packer packer(options);
  std::vector<MicroBatch> batches;
  const auto drain = [&] {
    while (auto batch = packer.next()) batches.push_back(std::move(*batch));
  };
  for (size_t i = 0; i < lengths.size(); ++i) {
    packer.push(make_sequence(i, lengths[i]));
    if (drain_early) drain();
  }
  packer.finish();
  drain();
  EXPECT_EQ(packer.waiting_tokens(), 0);
  return batches;
}

std::vector<int64_t> random_lengths(uint32_t seed, size_t n, double mean, int64_t most) {
  std::mt19937 random(seed);
  std::gamma_distribution<double> length(2.0, mean / 2.0);
  std::vector<int64_t> lengths(n);
  for (int64_t& l : lengths) {
    l = std::clamp(static_cast<int64_t>(length(random)), int64_t{1}, most);
  }
  return lengths;
}

struct Shape {
  double mean;
  int64_t most;
  PackerOptions options;
};

class PackerProperties : public testing::TestWithParam<Shape> {};

TEST_P(PackerProperties, EverySequenceOnceWithItsTokens) {
  const std::vector<int64_t> lengths = random_lengths(1, 700, GetParam().mean, GetParam().most);
  std::vector<int> seen(lengths.size());
  uint64_t number = 0;
  for (const MicroBatch& batch : pack(lengths, GetParam().options)) {
    EXPECT_EQ(batch.number, number++);
    ASSERT_EQ(batch.cu_seqlens.size(), batch.ordinals.size() + 1);
    EXPECT_EQ(batch.cu_seqlens.front(), 0);
    EXPECT_EQ(batch.cu_seqlens.back(), batch.n_tokens());
    EXPECT_TRUE(std::is_sorted(batch.ordinals.begin(), batch.ordinals.end()));
    int32_t longest = 0;
    for (size_t s = 0; s < batch.ordinals.size(); ++s) {
      const uint64_t ordinal = batch.ordinals[s];
      const int32_t begin = batch.cu_seqlens[s];
      ++seen[ordinal];
      ASSERT_EQ(batch.cu_seqlens[s + 1] - begin, lengths[ordinal]);
      for (int32_t i = 0; i < lengths[ordinal]; ++i) {
        EXPECT_EQ(batch.tokens[begin + i], static_cast<int32_t>(ordinal * 1000) + i);
        EXPECT_EQ(batch.positions[begin + i], i);
      }
      EXPECT_EQ(batch.pool_begin[s], begin);
      EXPECT_EQ(batch.pool_end[s], batch.cu_seqlens[s + 1]);
      longest = std::max(longest, static_cast<int32_t>(lengths[ordinal]));
    }
    EXPECT_EQ(batch.max_len, longest);
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), static_cast<int64_t>(lengths.size()));
}

TEST_P(PackerProperties, BudgetIsKeptUnlessOneSequenceExceedsIt) {
  const std::vector<int64_t> lengths = random_lengths(2, 700, GetParam().mean, GetParam().most);
  for (const MicroBatch& batch : pack(lengths, GetParam().options)) {
    if (batch.n_seqs() > 1) {
      EXPECT_LE(batch.n_tokens(), GetParam().options.tokens_per_batch);
    }
  }
}

TEST_P(PackerProperties, OvertakingStaysInTheWindow) {
  const std::vector<int64_t> lengths = random_lengths(3, 700, GetParam().mean, GetParam().most);
  const int64_t window =
      std::max(GetParam().options.look_ahead_tokens, GetParam().options.tokens_per_batch);
  std::vector<int64_t> begin(lengths.size());
  for (size_t i = 1; i < lengths.size(); ++i) {
    begin[i] = begin[i - 1] + std::min(lengths[i - 1], GetParam().options.tokens_per_batch);
  }
  std::vector<uint64_t> order;
  for (const MicroBatch& batch : pack(lengths, GetParam().options)) {
    order.insert(order.end(), batch.ordinals.begin(), batch.ordinals.end());
  }
  for (size_t i = 0; i < order.size(); ++i) {
    for (size_t j = i + 1; j < order.size(); ++j) {
      if (order[j] < order[i]) {
        EXPECT_LT(begin[order[i]] - begin[order[j]], window);
        EXPECT_LE(lengths[order[i]], GetParam().options.tokens_per_batch);
      }
    }
  }
}

TEST_P(PackerProperties, WaitingIsBounded) {
  const std::vector<int64_t> lengths = random_lengths(4, 700, GetParam().mean, GetParam().most);
  const int64_t window =
      std::max(GetParam().options.look_ahead_tokens, GetParam().options.tokens_per_batch);
  Packer packer(GetParam().options);
  int64_t over = 0;  // tokens that waiting sequences have above the budget
  const auto above = [&](size_t i) {
    return std::max(int64_t{0}, lengths[i] - GetParam().options.tokens_per_batch);
  };
  for (size_t i = 0; i < lengths.size(); ++i) {
    packer.push(make_sequence(i, lengths[i]));
    over += above(i);
    while (const auto batch = packer.next()) {
      for (const uint64_t ordinal : batch->ordinals) over -= above(ordinal);
    }
    EXPECT_LT(packer.waiting_tokens() - over, window);
  }
}

TEST_P(PackerProperties, MixOfCallsDoesNotMatter) {
  const std::vector<int64_t> lengths = random_lengths(5, 700, GetParam().mean, GetParam().most);
  const auto early = pack(lengths, GetParam().options, true);
  const auto late = pack(lengths, GetParam().options, false);
  ASSERT_EQ(early.size(), late.size());
  for (size_t i = 0; i < early.size(); ++i) EXPECT_EQ(early[i].ordinals, late[i].ordinals);
}

INSTANTIATE_TEST_SUITE_P(
    Lengths, PackerProperties,
    testing::Values(Shape{300, 100000, {.tokens_per_batch = 1024, .look_ahead_tokens = 8192}},
                    Shape{300, 100000, {.tokens_per_batch = 512, .look_ahead_tokens = 2048}},
                    Shape{64, 512, {.tokens_per_batch = 1024, .look_ahead_tokens = 4096}},
                    Shape{3, 20, {.tokens_per_batch = 1000, .look_ahead_tokens = 1}},
                    Shape{20, 20, {.tokens_per_batch = 1, .look_ahead_tokens = 100}}));

// Share of the budget that the micro-batches fill, the divided rest left out.
double fill(const std::vector<MicroBatch>& batches, const PackerOptions& options) {
  const auto rest = static_cast<size_t>(options.look_ahead_tokens / options.tokens_per_batch) + 1;
  double tokens = 0;
  double full = 0;
  for (size_t i = 0; i + rest < batches.size(); ++i) {
    tokens += static_cast<double>(batches[i].n_tokens());
    full += static_cast<double>(std::max(options.tokens_per_batch, batches[i].n_tokens()));
  }
  return tokens / full;
}

TEST(Packer, MicroBatchesAreNearlyEqual) {
  const PackerOptions proteins = {.tokens_per_batch = 2048, .look_ahead_tokens = 16384};
  EXPECT_GT(fill(pack(random_lengths(6, 3000, 350, 2048), proteins), proteins), 0.995);
  const PackerOptions texts = {.tokens_per_batch = 1024, .look_ahead_tokens = 4096};
  EXPECT_GT(fill(pack(random_lengths(7, 3000, 64, 512), texts), texts), 0.999);
}

TEST(Packer, RestIsDividedEvenly) {
  // 13 x 100 tokens, 500 fit: 5 + 4 + 4 sequences, not 5 + 5 + 3.
  const auto batches =
      pack(std::vector<int64_t>(13, 100), {.tokens_per_batch = 500, .look_ahead_tokens = 4000});
  ASSERT_EQ(batches.size(), 3);
  EXPECT_EQ(batches[0].n_tokens(), 500);
  EXPECT_EQ(batches[1].n_tokens(), 400);
  EXPECT_EQ(batches[2].n_tokens(), 400);
  // One token more than fits gives two halves.
  const auto halves =
      pack(std::vector<int64_t>(52, 10), {.tokens_per_batch = 512, .look_ahead_tokens = 2048});
  ASSERT_EQ(halves.size(), 2);
  EXPECT_EQ(halves[0].n_tokens(), 260);
  EXPECT_EQ(halves[1].n_tokens(), 260);
}

TEST(Packer, LongSequenceGoesAlone) {
  const auto batches =
      pack({10, 5000, 20, 30}, {.tokens_per_batch = 512, .look_ahead_tokens = 2048});
  ASSERT_EQ(batches.size(), 2);
  EXPECT_EQ(batches[0].ordinals, (std::vector<uint64_t>{0, 2, 3}));
  EXPECT_EQ(batches[1].ordinals, (std::vector<uint64_t>{1}));
}

TEST(Packer, PositionsWithHolesAreKept) {
  Packer packer({});
  Sequence sequence = make_sequence(4, 3);
  sequence.positions = {2, 3, 7};
  sequence.pool_begin = 1;
  packer.push(make_sequence(3, 2));
  packer.push(sequence);
  packer.finish();
  const auto batch = packer.next();
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->positions, (std::vector<int32_t>{0, 1, 2, 3, 7}));
  EXPECT_EQ(batch->max_len, 8);
  EXPECT_EQ(batch->pool_begin, (std::vector<int32_t>{0, 3}));
  EXPECT_EQ(batch->pool_end, (std::vector<int32_t>{2, 5}));
  EXPECT_FALSE(packer.next());
}

TEST(Packer, NothingInNothingOut) { EXPECT_TRUE(pack({}, {}).empty()); }

TEST(Packer, RefusesWhatIsNotASequence) {
  Packer packer({});
  EXPECT_THROW(packer.push(make_sequence(0, 0)), Error);
  Sequence sequence = make_sequence(1, 3);
  sequence.positions = {0, 1};
  EXPECT_THROW(packer.push(sequence), Error);
  sequence.positions = {0, 2, 2};
  EXPECT_THROW(packer.push(sequence), Error);
  sequence.positions = {-1, 0, 1};
  EXPECT_THROW(packer.push(sequence), Error);
  sequence.positions.clear();
  sequence.pool_end = 4;
  EXPECT_THROW(packer.push(sequence), Error);
  EXPECT_EQ(packer.waiting_tokens(), 0);
  EXPECT_THROW(Packer({.tokens_per_batch = 0}), Error);
  EXPECT_THROW(Packer({.look_ahead_tokens = 0}), Error);
}

}  // namespace
}  // namespace quintet
