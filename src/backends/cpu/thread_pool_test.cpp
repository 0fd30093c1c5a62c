#include "backends/cpu/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

namespace quintet {
namespace {

TEST(ThreadPool, EveryItemOnce) {
  ThreadPool pool({}, 3, std::make_shared<CoreLending>());
  for (const int64_t n : {0, 1, 2, 100, 5000}) {
    for (int round = 0; round < 20; ++round) {
      std::vector<std::atomic<int>> done(static_cast<size_t>(n));
      pool.parallel_for(n, [&](int64_t i) { ++done[static_cast<size_t>(i)]; });
      for (const auto& count : done) ASSERT_EQ(count, 1);
    }
  }
}

TEST(ThreadPool, AnItemsErrorReachesTheCaller) {
  ThreadPool pool({}, 2, std::make_shared<CoreLending>());
  std::atomic<int64_t> done{0};
  EXPECT_THROW(pool.parallel_for(1000,
                                 [&](int64_t i) {
                                   ++done;
                                   if (i == 10) throw std::runtime_error("item 10");
                                 }),
               std::runtime_error);
  done = 0;
  pool.parallel_for(100, [&](int64_t) { ++done; });  // and the pool goes on
  EXPECT_EQ(done, 100);
}

// Loops inside parts: every item once, whoever helps.
TEST(ThreadPool, PartsHaveLoopsOfTheirOwn) {
  for (const int threads : {1, 2, 4}) {
    ThreadPool pool({}, threads, std::make_shared<CoreLending>());
    for (const int64_t n_parts : {0, 1, 2, 7}) {
      constexpr int64_t kItems = 40;
      std::vector<std::atomic<int>> done(static_cast<size_t>(n_parts * kItems));
      pool.run_parts(n_parts, [&](int64_t part) {
        for (int round = 0; round < 10 * (part + 1); ++round) {
          pool.parallel_for(kItems,
                            [&](int64_t i) { ++done[static_cast<size_t>(part * kItems + i)]; });
          for (int64_t i = 0; i < kItems; ++i) {
            ASSERT_EQ(done[static_cast<size_t>(part * kItems + i)], round + 1);
          }
        }
      });
      for (int64_t part = 0; part < n_parts; ++part) {
        EXPECT_EQ(done[static_cast<size_t>(part * kItems)], 10 * (part + 1));
      }
    }
  }
}

TEST(ThreadPool, APartsErrorReachesTheCaller) {
  ThreadPool pool({}, 3, std::make_shared<CoreLending>());
  EXPECT_THROW(pool.run_parts(3,
                              [&](int64_t part) {
                                pool.parallel_for(100, [&](int64_t i) {
                                  if (part == 1 && i == 50) throw std::runtime_error("item 50");
                                });
                              }),
               std::runtime_error);
  std::atomic<int64_t> done{0};
  pool.run_parts(3, [&](int64_t) { pool.parallel_for(10, [&](int64_t) { ++done; }); });
  EXPECT_EQ(done, 30);
}

TEST(ThreadPool, ScratchBelongsToTheThread) {
  ThreadPool pool({}, 2, std::make_shared<CoreLending>());
  pool.parallel_for(200, [&](int64_t i) {
    const auto size = static_cast<size_t>(1000 + i);
    auto* scratch = thread_scratch(size);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(scratch) % 64, 0U);
    const auto mark = static_cast<std::byte>(i);
    std::fill_n(scratch, size, mark);
    std::this_thread::yield();
    for (size_t j = 0; j < size; ++j) ASSERT_EQ(scratch[j], mark);
  });
}

TEST(CoreLending, NothingToLendWhereThereIsOnePool) {
  const auto lending = std::make_shared<CoreLending>();
  ThreadPool pool({}, 1, lending);
  EXPECT_FALSE(lending->help_until(pool, [] { return false; }));
}

TEST(CoreLending, AnIdleThreadTakesItemsOfABusyPool) {
  const auto lending = std::make_shared<CoreLending>();
  ThreadPool busy({}, 1, lending);
  ThreadPool idle({}, 1, lending);
  std::atomic<bool> stop{false};
  std::thread helper([&] { EXPECT_TRUE(lending->help_until(idle, [&] { return stop.load(); })); });
  std::mutex mutex;
  std::set<std::thread::id> threads;
  for (int round = 0; round < 200; ++round) {
    std::atomic<int64_t> sum{0};
    busy.parallel_for(50, [&](int64_t i) {
      sum += i;
      std::this_thread::sleep_for(std::chrono::microseconds(20));
      const std::scoped_lock lock(mutex);
      threads.insert(std::this_thread::get_id());
    });
    ASSERT_EQ(sum, 50 * 49 / 2);
    if (round % 50 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // let it sleep
  }
  EXPECT_EQ(threads.size(), 2U);
  stop = true;
  lending->wake();
  helper.join();
}

TEST(CoreLending, AGuestTakesItemsOfAPartsLoop) {
  const auto lending = std::make_shared<CoreLending>();
  ThreadPool busy({}, 2, lending);
  ThreadPool idle({}, 1, lending);
  std::atomic<bool> stop{false};
  std::thread helper([&] { EXPECT_TRUE(lending->help_until(idle, [&] { return stop.load(); })); });
  std::atomic<int64_t> by_helper{0};
  for (int round = 0; round < 100; ++round) {
    std::atomic<int64_t> sum{0};
    busy.run_parts(2, [&](int64_t) {
      busy.parallel_for(50, [&](int64_t i) {
        sum += i;
        std::this_thread::sleep_for(std::chrono::microseconds(20));
        if (std::this_thread::get_id() == helper.get_id()) ++by_helper;
      });
    });
    ASSERT_EQ(sum, 50 * 49);
  }
  EXPECT_GT(by_helper, 0);
  stop = true;
  lending->wake();
  helper.join();
}

TEST(CoreLending, NoWakeIsLost) {
  const auto lending = std::make_shared<CoreLending>();
  ThreadPool one({}, 1, lending);
  ThreadPool other({}, 1, lending);
  for (int round = 0; round < 2000; ++round) {
    std::atomic<bool> stop{false};
    std::thread helper([&] { EXPECT_TRUE(lending->help_until(one, [&] { return stop.load(); })); });
    if (round % 20 == 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
    stop = true;
    lending->wake();
    helper.join();
  }
}

TEST(CoreLending, PoolsComeAndGoWhileHelpersLook) {
  const auto lending = std::make_shared<CoreLending>();
  ThreadPool idle({}, 1, lending);
  ThreadPool second({}, 1, lending);
  std::atomic<bool> stop{false};
  std::thread helper([&] { lending->help_until(idle, [&] { return stop.load(); }); });
  for (int round = 0; round < 300; ++round) {
    ThreadPool pool({}, 2, lending);
    std::atomic<int64_t> done{0};
    pool.parallel_for(64, [&](int64_t) { ++done; });
    ASSERT_EQ(done, 64);
  }
  stop = true;
  lending->wake();
  helper.join();
}

}  // namespace
}  // namespace quintet
