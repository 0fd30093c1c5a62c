#include "backends/cpu/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
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
