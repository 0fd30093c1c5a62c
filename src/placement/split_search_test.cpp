#include "placement/split_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

namespace quintet {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Best {
  double worst = kInfinity;
  size_t used = 0;
  double squares = kInfinity;
};

// Every way to give blocks [first, n) to devices d and later.
void try_all(int64_t n, size_t n_devices, size_t left, const RunPrice& price, size_t d,
             int64_t first, Best now, Best& best) {
  if (first == n) {
    const bool less = now.worst < best.worst * (1 - 1e-9);
    const bool equal = !less && now.worst <= best.worst * (1 + 1e-9);
    if (less || (equal &&
                 (now.used > best.used || (now.used == best.used && now.squares < best.squares)))) {
      best = now;
    }
    return;
  }
  if (d == n_devices) return;
  try_all(n, n_devices, left, price, d + 1, first, now, best);
  if (left == 0) return;
  for (int64_t last = first + 1; last <= n; ++last) {
    const double own = price(d, first, last);
    if (own == kInfinity) continue;
    const Best next = {std::max(now.worst, own), now.used + 1, now.squares + own * own};
    try_all(n, n_devices, left - 1, price, d + 1, last, next, best);
  }
}

TEST(SplitSearch, EqualsBruteForceOnRandomInstances) {
  std::mt19937 random(7);
  int infeasible = 0;
  for (int round = 0; round < 600; ++round) {
    const auto n = static_cast<int64_t>(1 + random() % 8);
    const size_t n_devices = 1 + random() % 4;
    const size_t max_devices = 1 + random() % n_devices;
    std::vector<double> cost, bytes, speed, memory;
    const bool equal_blocks = random() % 2 == 0;
    for (int64_t i = 0; i < n; ++i) {
      cost.push_back(equal_blocks ? 3.0 : 1.0 + static_cast<double>(random() % 9));
      bytes.push_back(1.0 + static_cast<double>(random() % 4));
    }
    for (size_t d = 0; d < n_devices; ++d) {
      speed.push_back(1.0 + static_cast<double>(random() % 3));
      memory.push_back(static_cast<double>(random() % 25));
    }
    const RunPrice price = [&](size_t d, int64_t first, int64_t last) {
      double time = 0;
      double need = first == 0 ? 2 : 0;
      for (int64_t i = first; i < last; ++i) {
        time += cost[static_cast<size_t>(i)] / speed[d];
        need += bytes[static_cast<size_t>(i)];
      }
      return need > memory[d] ? kInfinity : time;
    };
    Best best;
    try_all(n, n_devices, max_devices, price, 0, 0, {0, 0, 0}, best);
    const SplitResult found = search_split(n, n_devices, max_devices, price);
    if (best.worst == kInfinity) {
      ++infeasible;
      EXPECT_TRUE(found.runs.empty());
      continue;
    }
    ASSERT_NEAR(found.worst, best.worst, 1e-9);
    ASSERT_EQ(found.runs.size(), best.used) << "round " << round;
    double worst = 0;
    double squares = 0;
    int64_t next = 0;
    for (size_t i = 0; i < found.runs.size(); ++i) {
      const BlockRun& run = found.runs[i];
      EXPECT_EQ(run.first, next);
      if (i > 0) {
        EXPECT_GT(run.device, found.runs[i - 1].device);
      }
      const double own = price(run.device, run.first, run.last);
      worst = std::max(worst, own);
      squares += own * own;
      next = run.last;
    }
    EXPECT_EQ(next, n);
    EXPECT_NEAR(worst, best.worst, 1e-9);
    EXPECT_NEAR(squares, best.squares, 1e-6);
  }
  EXPECT_GT(infeasible, 30);
  EXPECT_LT(infeasible, 400);
}

TEST(SplitSearch, ManyBlocksOnManyDevicesTakeNoTime) {
  const RunPrice price = [](size_t, int64_t first, int64_t last) {
    return static_cast<double>(last - first);
  };
  const SplitResult found = search_split(100, 16, 16, price);
  EXPECT_EQ(found.worst, 7);
  EXPECT_EQ(found.runs.size(), 16U);
}

}  // namespace
}  // namespace quintet
