// Stages and ring workers on an asynchronous device: what is enqueued beside what, how much at
// most, whose failure it is, and what counts as busy.
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "link/async_fake_device.h"
#include "pipeline/fake_stages.h"
#include "pipeline/pipeline.h"
#include "pipeline/ring.h"

namespace quintet {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// What has happened, for those who wait for it.
class Board {
 public:
  void post(const std::string& event) {
    const std::scoped_lock lock(mutex_);
    events_.insert(event);
    changed_.notify_all();
  }
  bool has(const std::string& event) const {
    const std::scoped_lock lock(mutex_);
    return events_.contains(event);
  }
  // False where it does not happen: a test fails then, and does not hang.
  bool await(const std::string& event) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, seconds(5), [&] { return events_.contains(event); });
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::string> events_;
};

std::string event(const char* what, uint64_t number) { return fmt::format("{} {}", what, number); }

// One sequence of n tokens.
MicroBatch make_batch(uint64_t number, int32_t n = 5) {
  MicroBatch batch;
  batch.number = number;
  for (int32_t i = 0; i < n; ++i) {
    batch.tokens.push_back(static_cast<int32_t>(number) * 10 + i);
    batch.positions.push_back(i);
  }
  batch.cu_seqlens = {0, n};
  batch.ordinals = {number};
  batch.pool_begin = {0};
  batch.pool_end = {n};
  batch.max_len = n;
  return batch;
}

void expect_rows(const BatchResult& result, uint64_t number, int64_t n_blocks) {
  Sequence sequence;
  sequence.tokens = make_batch(number, static_cast<int32_t>(result.batch.n_tokens())).tokens;
  const std::vector<uint64_t> expected = fake::encode(sequence, n_blocks);
  ASSERT_EQ(result.batch.number, number);
  ASSERT_EQ(result.rows.size(), expected.size() * fake::kWidth);
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(fake::get(result.rows.data() + i * fake::kWidth), expected[i]);
  }
}

// A pipeline of stages on asynchronous devices, one block each.
struct Line {
  explicit Line(size_t n) {
    for (size_t i = 0; i < n; ++i) {
      devices.push_back(std::make_unique<AsyncFakeDevice>(fmt::format("fake:{}", i)));
      auto stage = std::make_unique<fake::EncoderStage>(*devices.back());
      stages.push_back(stage.get());
      const auto block = static_cast<int64_t>(i);
      parts.push_back({devices.back().get(), std::move(stage), {block, block + 1}});
    }
  }
  std::unique_ptr<Pipeline> build(PipelineOptions options = {}) {
    return std::make_unique<Pipeline>(std::move(parts), fake::kWidth, options);
  }

  std::vector<std::unique_ptr<AsyncFakeDevice>> devices;
  std::vector<fake::EncoderStage*> stages;
  std::vector<PipelineStage> parts;
};

// Each micro-batch is done only after the next one has been enqueued and the one before it has left
// the device. (A stage whose input lags behind would rightly hold nothing back, so all are there.)
TEST(AsyncStage, OpsAndCopiesOverlap) {
  constexpr uint64_t kBatches = 8;
  Line line(1);
  Board board;
  std::atomic<int> missed{0};
  line.stages[0]->before = [&](const MicroBatch& batch) {
    if (batch.number == 0) board.await("all pushed");
    board.post(event("called", batch.number));
  };
  line.stages[0]->during = [&](const MicroBatch& batch) {
    const uint64_t n = batch.number;
    if (n + 1 < kBatches && !board.await(event("called", n + 1))) ++missed;
    if (n > 0 && !board.await(event("result", n - 1))) ++missed;
  };
  const auto pipeline = line.build({.queue_capacity = kBatches});
  for (uint64_t number = 0; number < kBatches; ++number) pipeline->push(make_batch(number));
  pipeline->finish();
  board.post("all pushed");
  for (uint64_t number = 0; number < kBatches; ++number) {
    const auto result = pipeline->pop();
    ASSERT_TRUE(result);
    expect_rows(*result, number, 1);
    board.post(event("result", number));
  }
  EXPECT_FALSE(pipeline->pop());
  EXPECT_EQ(missed, 0);
}

TEST(AsyncStage, NothingIsHeldBackForAMicroBatchThatMayCome) {
  Line line(2);
  const auto pipeline = line.build();
  for (uint64_t number = 0; number < 5; ++number) {
    pipeline->push(make_batch(number));
    const auto result = pipeline->pop();  // without finish()
    ASSERT_TRUE(result);
    expect_rows(*result, number, 2);
  }
}

TEST(AsyncStage, TwoAreUnderWayAtMost) {
  Line line(2);
  for (size_t s = 0; s < 2; ++s) {
    line.stages[s]->during = [](const MicroBatch&) {
      std::this_thread::sleep_for(milliseconds(1));
    };
  }
  const auto pipeline = line.build({.queue_capacity = 4});
  std::thread feeder([&] {
    for (uint64_t number = 0; number < 40; ++number) pipeline->push(make_batch(number, 100));
    pipeline->finish();
  });
  for (uint64_t number = 0; number < 40; ++number) {
    if (number == 10) std::this_thread::sleep_for(milliseconds(30));  // all queues are full then
    const auto result = pipeline->pop();
    ASSERT_TRUE(result);
    expect_rows(*result, number, 2);
  }
  feeder.join();
  const int64_t hidden_bytes = 100 * (fake::kWidth + 3) * 4;
  for (const auto& device : line.devices) {
    EXPECT_EQ(device->peak_bytes, 2 * hidden_bytes);
    EXPECT_EQ(device->live_bytes, 0);
  }
}

// Micro-batch 3 fails while it is computed, 4 has failed already when it was called.
TEST(AsyncStage, AFailureWhileComputingComesBeforeALaterOne) {
  Line line(1);
  Board board;
  line.stages[0]->before = [&](const MicroBatch& batch) {
    if (batch.number == 0) board.await("all pushed");
    if (batch.number != 4) return;
    board.post("4 has failed");
    fail(ErrorKind::kDevice, "late");
  };
  line.stages[0]->during = [&](const MicroBatch& batch) {
    if (batch.number != 3) return;
    EXPECT_TRUE(board.await("4 has failed"));
    fail(ErrorKind::kMemory, "early");
  };
  const auto pipeline = line.build({.queue_capacity = 8});
  for (uint64_t number = 0; number < 6; ++number) pipeline->push(make_batch(number));
  board.post("all pushed");
  for (uint64_t number = 0; number < 3; ++number) expect_rows(*pipeline->pop(), number, 1);
  try {
    pipeline->pop();
    FAIL() << "expected BatchError";
  } catch (const BatchError& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kMemory);
    EXPECT_EQ(error.ordinals(), (std::vector<uint64_t>{3}));
  }
}

TEST(AsyncStage, AFailureOfTheNextOneLetsThisOneBy) {
  Line line(1);
  Board board;
  line.stages[0]->before = [&](const MicroBatch& batch) {
    if (batch.number == 0) board.await("all pushed");
    if (batch.number == 2) {
      board.post("2 has failed");
      fail(ErrorKind::kRecord, "no such token");
    }
  };
  line.stages[0]->during = [&](const MicroBatch& batch) {
    if (batch.number == 1 && !board.await("2 has failed")) ADD_FAILURE() << "not enqueued ahead";
  };
  const auto pipeline = line.build({.queue_capacity = 8});
  for (uint64_t number = 0; number < 4; ++number) pipeline->push(make_batch(number));
  board.post("all pushed");
  for (uint64_t number = 0; number < 2; ++number) expect_rows(*pipeline->pop(), number, 1);
  try {
    pipeline->pop();
    FAIL() << "expected BatchError";
  } catch (const BatchError& error) {
    EXPECT_EQ(error.ordinals(), (std::vector<uint64_t>{2}));
  }
}

// Nobody takes results for long, so the device is idle for most of the time although its driver has
// enqueued a micro-batch ahead.
TEST(AsyncStage, BusyIsWhatTheDeviceComputes) {
  constexpr int kBatches = 6;
  Line line(1);
  line.stages[0]->during = [](const MicroBatch&) { std::this_thread::sleep_for(milliseconds(10)); };
  const auto pipeline = line.build({.queue_capacity = 1});
  std::thread feeder([&] {
    for (uint64_t number = 0; number < kBatches; ++number) pipeline->push(make_batch(number));
    pipeline->finish();
  });
  for (int i = 0; i < kBatches; ++i) {
    std::this_thread::sleep_for(milliseconds(100));
    EXPECT_TRUE(pipeline->pop());
  }
  feeder.join();
  const StageStats stats = pipeline->stats().front();
  EXPECT_EQ(stats.batches, kBatches);
  EXPECT_GE(stats.busy_seconds, kBatches * 0.010);
  EXPECT_LT(stats.busy_seconds, kBatches * 0.050);
  EXPECT_GT(stats.waiting_seconds, 0.2);
}

// A device that is never without work is busy all the time, not longer.
TEST(AsyncStage, BusyTimesDoNotOverlap) {
  Line line(1);
  line.stages[0]->during = [](const MicroBatch&) { std::this_thread::sleep_for(milliseconds(5)); };
  const auto begin = std::chrono::steady_clock::now();
  const auto pipeline = line.build({.queue_capacity = 20});
  for (uint64_t number = 0; number < 20; ++number) pipeline->push(make_batch(number));
  pipeline->finish();
  while (pipeline->pop()) {
  }
  const std::chrono::duration<double> all = std::chrono::steady_clock::now() - begin;
  const StageStats stats = pipeline->stats().front();
  EXPECT_GE(stats.busy_seconds, 0.1);
  EXPECT_LE(stats.busy_seconds, all.count());
}

// ---- rings

StepJob make_step(uint64_t tag) {
  StepJob job;
  job.tag = tag;
  job.step.prompts = make_batch(tag, 3);
  job.step.slots.assign(3, -1);
  job.step.selected = {2};
  job.request.top_k = 1;
  job.ordinals = {tag};
  return job;
}

// A ring of asynchronous devices with one decoder block each.
struct Circle {
  explicit Circle(size_t n) {
    for (size_t i = 0; i < n; ++i) {
      devices.push_back(std::make_unique<AsyncFakeDevice>(fmt::format("fake:{}", i)));
      auto stage = std::make_unique<fake::DecoderStage>(*devices.back(), static_cast<uint64_t>(i));
      stage->reserve({.self = 1, .cross = 1});
      stages.push_back(stage.get());
      RingDevice& part = parts.emplace_back();
      part.device = devices.back().get();
      part.decoder = std::move(stage);
      part.decoder_range = {static_cast<int64_t>(i), static_cast<int64_t>(i) + 1};
    }
  }

  std::vector<std::unique_ptr<AsyncFakeDevice>> devices;
  std::vector<fake::DecoderStage*> stages;
  std::vector<RingDevice> parts;
};

uint64_t number_of(const StepBatch& step) { return step.prompts.number; }

// The first of two stages has the next group's step while one is computed; the last one chooses
// before it goes on.
TEST(AsyncRing, AStepIsEnqueuedBehindAnotherButNotWhereOneChooses) {
  constexpr uint64_t kSteps = 6;
  Circle circle(2);
  Board board;
  std::atomic<int> missed{0};
  std::atomic<int> too_early{0};
  circle.stages[0]->before = [&](const StepBatch& step) {
    if (number_of(step) == 0) board.await("all there");
    board.post(event("called", number_of(step)));
  };
  circle.stages[0]->during = [&](const StepBatch& step) {
    const uint64_t next = number_of(step) + 1;
    if (next < kSteps && !board.await(event("called", next))) ++missed;
  };
  std::atomic<int> in_last{0};
  circle.stages[1]->before = [&](const StepBatch&) {
    if (++in_last > 1) ++too_early;
  };
  circle.stages[1]->during = [&](const StepBatch&) {
    std::this_thread::sleep_for(milliseconds(5));
    --in_last;
  };
  Ring ring(std::move(circle.parts), {});
  for (uint64_t tag = 0; tag < kSteps; ++tag) ring.submit(make_step(tag));
  board.post("all there");
  for (uint64_t tag = 0; tag < kSteps; ++tag) {
    const RingResult result = ring.wait();
    ASSERT_NE(result.step, nullptr);
    EXPECT_EQ(result.step->tag, tag);
    const uint64_t hidden = fake::decode(make_batch(tag, 3).tokens, {}, 2);
    EXPECT_EQ(result.step->values.front(), fake::logit(hidden, result.step->ids.front()));
  }
  EXPECT_EQ(missed, 0);
  EXPECT_EQ(too_early, 0);
}

}  // namespace
}  // namespace quintet
