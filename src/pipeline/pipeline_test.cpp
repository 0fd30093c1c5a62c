// Order, back-pressure, failures in each stage at each time, abort and destruction at any moment,
// lending; with fake stages that add one number per block.
#include "pipeline/pipeline.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "link/async_fake_device.h"

namespace quintet {
namespace {

using std::chrono::milliseconds;

constexpr int64_t kWidth = 4;

// Row i starts as the token's number and gains 1 per stage.
class FakeStage : public EncoderStage {
 public:
  explicit FakeStage(FakeDevice& device) : device_(device) {}

  std::function<void(const MicroBatch&)> before = [](const MicroBatch&) {};  // when called
  std::function<void(const MicroBatch&)> during = [](const MicroBatch&) {};  // when computed

  Tensor forward(const MicroBatch& batch, Tensor hidden) override {
    before(batch);
    const bool embeds = !hidden;
    if (embeds) hidden = device_.allocate(batch.n_tokens(), kWidth);
    device_.run([this, batch, hidden, embeds] {
      during(batch);
      for (int64_t i = 0; i < hidden.rows(); ++i) {
        float* const row = FakeDevice::row(hidden, i);
        if (embeds) std::fill_n(row, kWidth, static_cast<float>(batch.tokens[i]));
        for (int64_t c = 0; c < kWidth; ++c) row[c] += 1.0F;
      }
    });
    return hidden;
  }

 private:
  FakeDevice& device_;
};

// n devices and fake stages, taken apart by build().
struct Bench {
  explicit Bench(size_t n, FakeKind kind = FakeKind::kHost) {
    for (size_t i = 0; i < n; ++i) devices.push_back(make_fake_device(i, kind));
    make_stages();
  }
  void make_stages() {
    for (const auto& device : devices) stages.push_back(std::make_unique<FakeStage>(*device));
  }

  std::unique_ptr<Pipeline> build(PipelineOptions options = {}) {
    std::vector<PipelineStage> parts;
    for (size_t i = 0; i < devices.size(); ++i) {
      const auto block = static_cast<int64_t>(i);
      parts.push_back({devices[i].get(), std::move(stages[i]), {block, block + 1}});
    }
    return std::make_unique<Pipeline>(std::move(parts), kWidth, options);
  }

  std::vector<std::unique_ptr<FakeDevice>> devices;
  std::vector<std::unique_ptr<FakeStage>> stages;
};

// Two sequences, of one and of n - 1 tokens.
MicroBatch make_batch(uint64_t number, int32_t n = 3) {
  MicroBatch batch;
  batch.number = number;
  for (int32_t i = 0; i < n; ++i) {
    batch.tokens.push_back(static_cast<int32_t>(number) * 100 + i);
    batch.positions.push_back(std::max(0, i - 1));
  }
  batch.cu_seqlens = {0, 1, n};
  batch.ordinals = {number * 2, number * 2 + 1};
  batch.pool_begin = {0, 1};
  batch.pool_end = {1, n};
  batch.max_len = n - 1;
  return batch;
}

void expect_rows(const BatchResult& result, uint64_t number, size_t n_stages) {
  EXPECT_EQ(result.batch.number, number);
  ASSERT_EQ(result.rows.size(), result.batch.tokens.size() * kWidth);
  for (size_t i = 0; i < result.rows.size(); ++i) {
    ASSERT_EQ(result.rows[i],
              static_cast<float>(result.batch.tokens[i / kWidth]) + static_cast<float>(n_stages));
  }
}

// Pushes n micro-batches from a thread of its own; says how many were accepted.
class Feeder {
 public:
  Feeder(Pipeline& pipeline, uint64_t n)
      : thread_([this, &pipeline, n] {
          while (accepted_ < n &&
                 pipeline.push(make_batch(accepted_, 2 + static_cast<int32_t>(accepted_ % 7)))) {
            ++accepted_;
          }
          pipeline.finish();
        }) {}
  ~Feeder() { thread_.join(); }
  uint64_t accepted() const { return accepted_; }

 private:
  std::atomic<uint64_t> accepted_{0};
  std::thread thread_;
};

class PipelineOf : public testing::TestWithParam<std::tuple<size_t, FakeKind, size_t>> {
 protected:
  size_t n_stages() const { return std::get<0>(GetParam()); }
  FakeKind kind() const { return std::get<1>(GetParam()); }
  PipelineOptions options() const { return {.queue_capacity = std::get<2>(GetParam())}; }
};

TEST_P(PipelineOf, GivesEverythingInOrder) {
  Bench bench(n_stages(), kind());
  {
    const auto pipeline = bench.build(options());
    const Feeder feeder(*pipeline, 100);
    for (uint64_t number = 0; number < 100; ++number) {
      const auto result = pipeline->pop();
      ASSERT_TRUE(result);
      expect_rows(*result, number, n_stages());
    }
    EXPECT_FALSE(pipeline->pop());
    EXPECT_FALSE(pipeline->pop());
    EXPECT_FALSE(pipeline->push(make_batch(0)));
    for (const StageStats& stats : pipeline->stats()) {
      EXPECT_EQ(stats.batches, 100);
      EXPECT_GT(stats.busy_seconds, 0);
    }
  }
  for (const auto& device : bench.devices) {
    EXPECT_EQ(device->live_bytes, 0);
    EXPECT_EQ(device->attached, 1);
  }
}

TEST_P(PipelineOf, PoolsOnTheDevice) {
  Bench bench(n_stages(), kind());
  PipelineOptions pooled = options();
  pooled.pooling = Pooling::kMean;
  const auto pipeline = bench.build(pooled);
  const Feeder feeder(*pipeline, 20);
  for (uint64_t number = 0; number < 20; ++number) {
    const auto result = pipeline->pop();
    ASSERT_TRUE(result);
    ASSERT_EQ(result->rows.size(), 2 * kWidth);
    const auto base = static_cast<float>(number * 100 + n_stages());
    const auto n = static_cast<float>(result->batch.n_tokens());
    EXPECT_EQ(result->rows[0], base);
    EXPECT_FLOAT_EQ(result->rows[kWidth], base + n / 2);  // the mean of 1 .. n - 1
  }
  EXPECT_FALSE(pipeline->pop());
}

TEST_P(PipelineOf, FailureInAnyStageAtAnyTimeNamesItsRecords) {
  for (size_t stage = 0; stage < n_stages(); ++stage) {
    for (const uint64_t number : {0, 1, 2, 5, 19, 20, 21, 22, 25, 39}) {
      const uint64_t failing = number % 20;
      Bench bench(n_stages(), kind());
      FakeStage& fake = *bench.stages[stage];
      (number < 20 ? fake.before : fake.during) = [failing](const MicroBatch& batch) {
        if (batch.number == failing) fail(ErrorKind::kMemory, "no room for batch {}", failing);
      };
      const auto pipeline = bench.build(options());
      const Feeder feeder(*pipeline, 20);
      for (uint64_t number = 0; number < failing; ++number) {
        const auto result = pipeline->pop();
        ASSERT_TRUE(result);
        expect_rows(*result, number, n_stages());
      }
      for (int again = 0; again < 2; ++again) {
        try {
          pipeline->pop();
          FAIL() << "expected BatchError";
        } catch (const BatchError& error) {
          EXPECT_EQ(error.kind(), ErrorKind::kMemory);
          EXPECT_EQ(error.ordinals(), (std::vector<uint64_t>{failing * 2, failing * 2 + 1}));
          EXPECT_EQ(std::string(error.what()),
                    fmt::format("stage {0} (fake:{0}, blocks {0}-{0}): no room for batch {1}",
                                stage, failing));
        }
      }
      EXPECT_FALSE(pipeline->push(make_batch(0)));
    }
  }
}

TEST_P(PipelineOf, AnyMomentIsAGoodOneToStop) {
  std::mt19937 random(7);
  for (int round = 0; round < 40; ++round) {
    Bench bench(n_stages(), kind());
    for (const auto& stage : bench.stages) {
      const auto pause = std::chrono::microseconds(random() % 200);
      stage->before = [pause](const MicroBatch&) { std::this_thread::sleep_for(pause); };
    }
    auto pipeline = bench.build(options());
    Feeder feeder(*pipeline, 1000);
    const int pops = static_cast<int>(random() % 10);
    for (int i = 0; i < pops; ++i) EXPECT_TRUE(pipeline->pop());
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 1000));
    pipeline->abort();
    EXPECT_FALSE(pipeline->pop());
    EXPECT_FALSE(pipeline->push(make_batch(0)));
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, PipelineOf,
                         testing::Combine(testing::Values(1, 2, 3, 5),
                                          testing::Values(FakeKind::kHost, FakeKind::kOther,
                                                          FakeKind::kAsync, FakeKind::kMixed),
                                          testing::Values(1, 4)));

TEST(Pipeline, EarliestFailureWins) {
  // Stage 0 fails at micro-batch 3 long before stage 1 gets to fail at micro-batch 2.
  Bench bench(2);
  std::atomic<bool> first_failed{false};
  bench.stages[0]->before = [&](const MicroBatch& batch) {
    if (batch.number != 3) return;
    first_failed = true;
    fail(ErrorKind::kDevice, "late");
  };
  bench.stages[1]->before = [&](const MicroBatch& batch) {
    if (batch.number != 2) return;
    while (!first_failed) std::this_thread::yield();
    std::this_thread::sleep_for(milliseconds(5));
    fail(ErrorKind::kDevice, "early");
  };
  const auto pipeline = bench.build();
  const Feeder feeder(*pipeline, 10);
  EXPECT_TRUE(pipeline->pop());
  EXPECT_TRUE(pipeline->pop());
  try {
    pipeline->pop();
    FAIL() << "expected BatchError";
  } catch (const BatchError& error) {
    EXPECT_EQ(error.ordinals().front(), 4);
  }
}

TEST(Pipeline, FailureOfALinkNamesItsRecords) {
  Bench bench(2, FakeKind::kOther);
  bench.devices[0]->downloads_until_failure = 3;
  const auto pipeline = bench.build();
  const Feeder feeder(*pipeline, 10);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(pipeline->pop());
  try {
    pipeline->pop();
    FAIL() << "expected BatchError";
  } catch (const BatchError& error) {
    EXPECT_EQ(error.ordinals(), (std::vector<uint64_t>{6, 7}));
    EXPECT_NE(std::string(error.what()).find("the cable is unplugged"), std::string::npos);
  }
}

TEST(Pipeline, OtherExceptionsBecomeErrors) {
  Bench bench(1);
  bench.stages[0]->before = [](const MicroBatch&) { throw std::bad_alloc(); };
  const auto pipeline = bench.build();
  EXPECT_TRUE(pipeline->push(make_batch(0)));
  try {
    pipeline->pop();
    FAIL() << "expected BatchError";
  } catch (const BatchError& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kMemory);
  }
}

TEST(Pipeline, ProducerWaitsForTheConsumer) {
  Bench bench(2);
  const auto pipeline = bench.build({.queue_capacity = 2});
  Feeder feeder(*pipeline, 1000);
  // In two queues of 2, in two stages, among the finished 2.
  for (uint64_t fit = 8; fit < 12; ++fit) {
    while (feeder.accepted() < fit) std::this_thread::yield();
    std::this_thread::sleep_for(milliseconds(5));
    EXPECT_EQ(feeder.accepted(), fit);
    EXPECT_TRUE(pipeline->pop());
  }
  pipeline->abort();
}

TEST(Pipeline, OneThreadMayDoBoth) {
  Bench bench(2);
  const auto pipeline = bench.build();
  for (uint64_t number = 0; number < 30; ++number) {
    EXPECT_TRUE(pipeline->push(make_batch(number)));
    if (number >= 3) expect_rows(*pipeline->pop(), number - 3, 2);
  }
  pipeline->finish();
  for (uint64_t number = 27; number < 30; ++number) expect_rows(*pipeline->pop(), number, 2);
  EXPECT_FALSE(pipeline->pop());
}

TEST(Pipeline, RowsAreRecycled) {
  Bench bench(1);
  const auto pipeline = bench.build();
  std::set<const float*> addresses;
  for (uint64_t number = 0; number < 50; ++number) {
    pipeline->push(make_batch(number));
    addresses.insert(pipeline->pop()->rows.data());
  }
  EXPECT_LE(addresses.size(), 3);
}

TEST(Pipeline, ResultsOutliveThePipeline) {
  Bench bench(1);
  auto pipeline = bench.build();
  pipeline->push(make_batch(5));
  const auto result = pipeline->pop();
  pipeline.reset();
  expect_rows(*result, 5, 1);
}

TEST(Pipeline, StagesWorkAtTheSameTime) {
  // Each stage waits for the other one to be busy with the next micro-batch.
  Bench bench(2);
  std::mutex mutex;
  std::condition_variable changed;
  std::array<int64_t, 2> begun = {-1, -1};
  for (size_t s = 0; s < 2; ++s) {
    bench.stages[s]->before = [&, s](const MicroBatch& batch) {
      std::unique_lock lock(mutex);
      begun[s] = static_cast<int64_t>(batch.number);
      changed.notify_all();
      const int64_t other = begun[s] + (s == 0 ? -1 : 1);
      if (other < 10) changed.wait(lock, [&] { return begun[1 - s] >= other; });
    };
  }
  const auto pipeline = bench.build();
  const Feeder feeder(*pipeline, 10);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(pipeline->pop());
}

TEST(Pipeline, RefusesWhatCannotWork) {
  EXPECT_THROW(Pipeline({}, kWidth), Error);
  FakeDevice device("fake:0");
  std::vector<PipelineStage> twice;
  twice.push_back({&device, std::make_unique<FakeStage>(device), {0, 1}});
  twice.push_back({&device, std::make_unique<FakeStage>(device), {1, 2}});
  EXPECT_THROW(Pipeline(std::move(twice), kWidth), Error);
  Bench bench(1);
  EXPECT_THROW(bench.build()->push(MicroBatch{}), Error);
}

// Two lending devices; each micro-batch of a stage is 8 pieces of 2 ms that others may run.
struct LendingBench {
  LendingBench() {
    for (LendingDevice* device : {&a, &b}) {
      auto stage = std::make_unique<FakeStage>(*device);
      stage->before = [device](const MicroBatch&) {
        device->share(8, [] { std::this_thread::sleep_for(milliseconds(2)); });
      };
      const auto block = static_cast<int64_t>(parts.size());
      parts.push_back({device, std::move(stage), {block, block + 1}});
    }
  }

  LendingDevice::Board board;
  LendingDevice a{"fake:0", board};
  LendingDevice b{"fake:1", board};
  std::vector<PipelineStage> parts;
};

TEST(Lending, WaitingStagesHelpDuringFillAndDrain) {
  LendingBench bench;
  Pipeline pipeline(std::move(bench.parts), kWidth);
  pipeline.push(make_batch(0));
  pipeline.finish();
  expect_rows(*pipeline.pop(), 0, 2);
  EXPECT_FALSE(pipeline.pop());
  EXPECT_GE(bench.b.helped, 2);  // while the first micro-batch was in stage 0
  EXPECT_GE(bench.a.helped, 2);  // while the last one was in stage 1
}

TEST(Lending, CanBeSwitchedOff) {
  LendingBench bench;
  Pipeline pipeline(std::move(bench.parts), kWidth, {.lend = false});
  pipeline.push(make_batch(0));
  pipeline.finish();
  EXPECT_TRUE(pipeline.pop());
  EXPECT_EQ(bench.a.helped + bench.b.helped, 0);
}

TEST(Lending, NothingIsLostAndNobodySleepsOn) {
  for (int round = 0; round < 20; ++round) {
    LendingBench bench;
    for (PipelineStage& part : bench.parts) {
      auto* device = static_cast<LendingDevice*>(part.device);
      static_cast<FakeStage&>(*part.blocks).before = [device](const MicroBatch& batch) {
        device->share(static_cast<int>(batch.number % 3), [] { std::this_thread::yield(); });
      };
    }
    Pipeline pipeline(std::move(bench.parts), kWidth);
    const Feeder feeder(pipeline, 60);
    const uint64_t last = round % 2 == 0 ? 60 : 20;
    for (uint64_t number = 0; number < last; ++number) expect_rows(*pipeline.pop(), number, 2);
    if (last < 60) pipeline.abort();
    EXPECT_FALSE(pipeline.pop());
  }
}

}  // namespace
}  // namespace quintet
