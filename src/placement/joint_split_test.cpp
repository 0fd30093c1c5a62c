#include "placement/joint_split.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <functional>
#include <limits>
#include <random>

namespace quintet {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Best {
  double worst = kInfinity;
  double squares = kInfinity;
};

// Every split there is.
Best by_force(int64_t n_encoder, int64_t n_decoder, size_t n_devices, size_t max_stages,
              const JointPrice& price) {
  Best best;
  const std::function<void(size_t, int64_t, int64_t, size_t, Best)> visit =
      [&](size_t d, int64_t e, int64_t l, size_t stages, Best so_far) {
        if (d == n_devices) {
          if (e < n_encoder || l < n_decoder || stages > max_stages) return;
          const bool equal = so_far.worst <= best.worst * (1 + 1e-9);
          if (so_far.worst < best.worst * (1 - 1e-9) || (equal && so_far.squares < best.squares)) {
            best = so_far;
          }
          return;
        }
        for (int64_t to_e = e; to_e <= n_encoder; ++to_e) {
          for (int64_t to_l = l; to_l <= n_decoder; ++to_l) {
            const JointRun run = {.encoder = {e, to_e}, .decoder = {l, to_l}};
            const double own = run.empty() ? 0 : price(d, run);
            visit(d + 1, to_e, to_l, stages + (to_l > l ? 1 : 0),
                  {std::max(so_far.worst, own), so_far.squares + own * own});
          }
        }
      };
  visit(0, 0, 0, 0, {0, 0});
  return best;
}

double sum(const std::vector<double>& values, const BlockSpan& span) {
  double total = 0;
  for (int64_t i = span.first; i < span.last; ++i) total += values[static_cast<size_t>(i)];
  return total;
}

TEST(JointSplit, EqualsBruteForceOnRandomInstances) {
  std::mt19937 random(5);
  const auto upto = [&](size_t n) { return 1 + static_cast<double>(random() % n); };
  int without = 0;
  for (int round = 0; round < 200; ++round) {
    const auto n_encoder = static_cast<int64_t>(random() % 5);
    const auto n_decoder = 1 + static_cast<int64_t>(random() % 5);
    const size_t n_devices = 1 + random() % 3;
    const size_t max_stages = 1 + random() % n_devices;
    std::vector<double> encoder;
    std::vector<double> decoder;
    std::vector<double> speed;
    std::vector<double> room;
    for (int64_t i = 0; i < n_encoder; ++i) encoder.push_back(upto(9));
    for (int64_t i = 0; i < n_decoder; ++i) decoder.push_back(upto(9));
    for (size_t d = 0; d < n_devices; ++d) {
      speed.push_back(upto(4));
      room.push_back(upto(8));
    }
    const auto price = [&](size_t d, const JointRun& run) {
      const bool fits = static_cast<double>(run.encoder.size() + run.decoder.size()) <= room[d];
      return fits ? (sum(encoder, run.encoder) + sum(decoder, run.decoder)) / speed[d] : kInfinity;
    };
    const Best best = by_force(n_encoder, n_decoder, n_devices, max_stages, price);
    const JointSplit split = search_joint_split(n_encoder, n_decoder, n_devices, max_stages, price);
    if (best.worst == kInfinity) {
      ++without;
      EXPECT_TRUE(split.runs.empty()) << "round " << round;
      continue;
    }
    ASSERT_EQ(split.runs.size(), n_devices) << "round " << round;
    EXPECT_NEAR(split.worst, best.worst, 1e-9) << "round " << round;
    Best found{0, 0};
    int64_t e = 0;
    int64_t l = 0;
    size_t stages = 0;
    for (size_t d = 0; d < n_devices; ++d) {
      const JointRun& run = split.runs[d];
      EXPECT_EQ(run.encoder.first, e);
      EXPECT_EQ(run.decoder.first, l);
      e = run.encoder.last;
      l = run.decoder.last;
      stages += run.decoder.empty() ? 0 : 1;
      const double own = run.empty() ? 0 : price(d, run);
      found = {std::max(found.worst, own), found.squares + own * own};
    }
    EXPECT_EQ(e, n_encoder);
    EXPECT_EQ(l, n_decoder);
    EXPECT_LE(stages, max_stages);
    EXPECT_NEAR(found.worst, best.worst, 1e-9) << "round " << round;
    EXPECT_NEAR(found.squares / best.squares, 1, 1e-9) << "round " << round;
  }
  EXPECT_GT(without, 10);
  EXPECT_LT(without, 150);
}

TEST(JointSplit, DeepStacksOnManyDevicesTakeLittleTime) {
  const auto price = [](size_t d, const JointRun& run) {
    return (3.0 * static_cast<double>(run.encoder.size()) +
            2.0 * static_cast<double>(run.decoder.size())) /
           static_cast<double>(1 + d % 3);
  };
  const std::clock_t begin = std::clock();
  const JointSplit split = search_joint_split(48, 48, 8, 8, price);
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  EXPECT_GE(split.worst, 5.0 * 48 / 15 - 1e-9);  // the speeds are 1 + 2 + 3 + ... = 15
  EXPECT_LE(split.worst, 5.0 * 48 / 15 * 1.2);
  EXPECT_LT(seconds, 2.0);
}

}  // namespace
}  // namespace quintet
