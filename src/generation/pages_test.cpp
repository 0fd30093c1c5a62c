#include "generation/pages.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace quintet {
namespace {

TEST(PagesOfRecord, CountsWhatIsKept) {
  EXPECT_EQ(pages_of_record(1, 0, 1, 1).self, 1);  // the last new token is not kept
  EXPECT_EQ(pages_of_record(24, 0, 1, 1).self, 1);
  EXPECT_EQ(pages_of_record(24, 0, 1, 2).self, 2);
  EXPECT_EQ(pages_of_record(20, 0, 1, 5).self, 1);
  EXPECT_EQ(pages_of_record(20, 0, 1, 6).self, 2);
  EXPECT_EQ(pages_of_record(1, 0, 1, 64).self, 3);
}

TEST(PagesOfRecord, FullPagesOfThePromptStandOnce) {
  EXPECT_EQ(pages_of_record(48, 0, 4, 24).self, 2 + 4);
  EXPECT_EQ(pages_of_record(47, 0, 4, 24).self, 1 + 4 * 2);
  EXPECT_EQ(pages_of_record(48, 0, 4, 1).self, 2);
}

TEST(PagesOfRecord, SourceStandsOnce) {
  EXPECT_EQ(pages_of_record(1, 0, 4, 8).cross, 0);
  EXPECT_EQ(pages_of_record(1, 1, 4, 8).cross, 1);
  EXPECT_EQ(pages_of_record(1, 24, 4, 8).cross, 1);
  EXPECT_EQ(pages_of_record(1, 25, 4, 8).cross, 2);
}

TEST(PagesOfRecord, StaysInRange) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(pages_of_record(30, 1, 1000, kMost).self, kMost);
}

TEST(PagePool, ReservesNoMoreThanThereIs) {
  PagePool pool(10);
  EXPECT_TRUE(pool.reserve(7));
  EXPECT_FALSE(pool.reserve(4));
  EXPECT_TRUE(pool.reserve(3));
  EXPECT_TRUE(pool.reserve(0));
  pool.unreserve(7);
  EXPECT_EQ(pool.n_reserved(), 3);
  EXPECT_TRUE(pool.reserve(7));
}

TEST(PagePool, APageIsFreeOnceItsLastOwnerIsGone) {
  PagePool pool(2);
  const int32_t a = pool.take();
  const int32_t b = pool.take();
  EXPECT_EQ(pool.n_free(), 0);
  pool.share(a);
  pool.share(a);
  pool.drop(a);
  pool.drop(a);
  EXPECT_EQ(pool.owners(a), 1);
  EXPECT_EQ(pool.n_free(), 0);
  pool.drop(b);
  EXPECT_EQ(pool.take(), b);
  pool.drop(a);
  EXPECT_EQ(pool.n_free(), 1);
}

TEST(PagePool, GivesTheLeastFreePage) {
  PagePool pool(50);
  std::mt19937 random(3);
  std::vector<bool> taken(50, false);
  for (int round = 0; round < 2000; ++round) {
    const size_t page = random() % 50;
    if (taken[page]) {
      pool.drop(static_cast<int32_t>(page));
      taken[page] = false;
    } else if (pool.n_free() > 0) {
      const auto got = static_cast<size_t>(pool.take());
      for (size_t lower = 0; lower < got; ++lower) EXPECT_TRUE(taken[lower]);
      EXPECT_FALSE(taken[got]);
      taken[got] = true;
    }
  }
}

}  // namespace
}  // namespace quintet
