// Both stacks over one set of devices: results against a plain function, what leaves the head, the
// order of jobs, failures, abort and destruction at any moment, lending.
#include "pipeline/ring.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "link/async_fake_device.h"
#include "pipeline/fake_stages.h"

namespace quintet {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// n devices, each with one block of each stack.
struct Bench {
  explicit Bench(size_t n, FakeKind kind = FakeKind::kHost) {
    for (size_t i = 0; i < n; ++i) add(make_fake_device(i, kind));
  }
  void add(std::unique_ptr<FakeDevice> device) {
    const auto block = static_cast<int64_t>(parts.size());
    auto encoder = std::make_unique<fake::EncoderStage>(*device);
    auto decoder = std::make_unique<fake::DecoderStage>(*device, static_cast<uint64_t>(block));
    decoder->reserve({.self = 10, .cross = 10});
    encoders.push_back(encoder.get());
    decoders.push_back(decoder.get());
    RingDevice& part = parts.emplace_back();
    part.device = device.get();
    part.encoder = std::move(encoder);
    part.encoder_range = {block, block + 1};
    part.decoder = std::move(decoder);
    part.decoder_range = {block, block + 1};
    devices.push_back(std::move(device));
  }
  std::unique_ptr<Ring> build(RingOptions options = {}) {
    return std::make_unique<Ring>(std::move(parts), options);
  }

  std::vector<std::unique_ptr<FakeDevice>> devices;
  std::vector<fake::EncoderStage*> encoders;
  std::vector<fake::DecoderStage*> decoders;
  std::vector<RingDevice> parts;
};

MicroBatch make_prompts(const std::vector<std::vector<int32_t>>& sequences, uint64_t ordinal = 0) {
  MicroBatch batch;
  batch.cu_seqlens = {0};
  for (const auto& tokens : sequences) {
    for (size_t i = 0; i < tokens.size(); ++i) {
      batch.tokens.push_back(tokens[i]);
      batch.positions.push_back(static_cast<int32_t>(i));
    }
    batch.cu_seqlens.push_back(static_cast<int32_t>(batch.tokens.size()));
    batch.ordinals.push_back(ordinal++);
    batch.max_len = std::max(batch.max_len, static_cast<int32_t>(tokens.size()));
  }
  batch.pool_begin.assign(sequences.size(), 0);
  batch.pool_end.assign(sequences.size(), 0);
  return batch;
}

// A prompt of n tokens of which nothing is kept.
StepJob make_step(uint64_t tag, int32_t n = 3) {
  StepJob job;
  job.tag = tag;
  std::vector<int32_t> tokens;
  for (int32_t i = 0; i < n; ++i) tokens.push_back(static_cast<int32_t>(tag) * 10 + i);
  job.step.prompts = make_prompts({tokens}, tag);
  job.step.slots.assign(tokens.size(), -1);
  for (int32_t i = 0; i < n; ++i) job.step.selected.push_back(i);
  job.request.hidden = true;
  job.ordinals = {tag};
  return job;
}

EncodeJob make_encode(uint64_t tag) {
  return {.tag = tag, .batch = make_prompts({{static_cast<int32_t>(tag), 5}, {7}}, tag)};
}

class RingOf : public testing::TestWithParam<std::tuple<size_t, FakeKind>> {
 protected:
  size_t n() const { return std::get<0>(GetParam()); }
  FakeKind kind() const { return std::get<1>(GetParam()); }
};

TEST_P(RingOf, StepsReadTheEncodersRows) {
  Bench bench(n(), kind());
  const auto blocks = static_cast<int64_t>(n());
  {
    const auto ring = bench.build();
    EXPECT_EQ(ring->n_encoder_stages(), n());
    EXPECT_EQ(ring->n_decoder_stages(), n());
    const std::vector<std::vector<int32_t>> texts = {{4, 5, 6, 7}, {8}, {9, 10}};
    ring->submit(EncodeJob{.tag = 3, .batch = make_prompts(texts)});
    const RingResult encoded = ring->wait();
    ASSERT_NE(encoded.encode, nullptr);
    EXPECT_EQ(encoded.encode->tag, 3);
    EXPECT_EQ(encoded.encode->batch.ordinals, (std::vector<uint64_t>{0, 1, 2}));
    const Tensor& rows = encoded.encode->rows;
    ASSERT_NE(rows.buffer()->host(), nullptr);

    // The last two texts, each in a page of its own; a prompt of two tokens reads each.
    StepJob job;
    job.tag = 4;
    job.step.prompts = make_prompts({{1, 2}, {3, 4}});
    job.step.slots = {0, 1, 24, 25};
    job.sources = {rows.rows(5, 2), rows.rows(4, 1)};
    job.step.source_slots = {48, 49, 72};
    job.step.cross = {
        .pages = {2, 3}, .begin = {0, 1, 2}, .table = {0, 0, 1, 1}, .n_keys = {2, 2, 1, 1}};
    job.step.selected = {1, 3};
    job.request.hidden = true;
    ring->submit(std::move(job));
    const RingResult stepped = ring->wait();
    ASSERT_NE(stepped.step, nullptr);
    EXPECT_EQ(stepped.step->tag, 4);
    EXPECT_EQ(stepped.step->n_selected, 2);
    const auto source = [&](const std::vector<int32_t>& text) {
      Sequence sequence;
      sequence.tokens = text;
      return fake::encode(sequence, blocks);
    };
    const float* const hidden = stepped.step->rows.data();
    EXPECT_EQ(fake::get(hidden), fake::decode(std::array{1, 2}, source(texts[2]), blocks));
    EXPECT_EQ(fake::get(hidden + fake::kWidth),
              fake::decode(std::array{3, 4}, source(texts[1]), blocks));
    EXPECT_FALSE(ring->wait());

    const std::vector<StageStats> stats = ring->stats();
    ASSERT_EQ(stats.size(), 2 * n());
    for (size_t i = 0; i < stats.size(); ++i) {
      EXPECT_EQ(stats[i].stack, i < n() ? "encoder" : "decoder");
      EXPECT_EQ(stats[i].device, fmt::format("fake:{}", i % n()));
      EXPECT_EQ(stats[i].range.first_block, static_cast<int64_t>(i % n()));
      EXPECT_EQ(stats[i].batches, 1);
      EXPECT_EQ(stats[i].tokens, i < n() ? 7 : 4);
    }
  }
  for (const auto& device : bench.devices) {
    EXPECT_EQ(device->live_bytes, 0);
    EXPECT_EQ(device->attached, 1);
  }
}

TEST_P(RingOf, FailureInAnyStageNamesItsRecords) {
  for (size_t i = 0; i < 4 * n(); ++i) {
    Bench bench(n(), kind());
    const size_t stage = i / 2;
    const bool when_called = i % 2 == 0;
    const bool is_encoder = stage < n();
    if (is_encoder) {
      fake::EncoderStage& encoder = *bench.encoders[stage];
      (when_called ? encoder.before : encoder.during) = [](const MicroBatch& batch) {
        if (batch.ordinals.front() == 5) throw std::bad_alloc();
      };
    } else {
      fake::DecoderStage& decoder = *bench.decoders[stage - n()];
      (when_called ? decoder.before : decoder.during) = [](const StepBatch& step) {
        if (step.prompts.ordinals.front() == 5) throw std::bad_alloc();
      };
    }
    const auto ring = bench.build();
    for (uint64_t tag = 0; tag < 8; ++tag) {
      if (is_encoder) {
        ring->submit(make_encode(tag));
      } else {
        ring->submit(make_step(tag));
      }
    }
    for (int again = 0; again < 2; ++again) {
      try {
        while (ring->wait()) {
        }
        FAIL() << "expected BatchError";
      } catch (const BatchError& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kMemory);
        EXPECT_EQ(error.ordinals(),
                  is_encoder ? (std::vector<uint64_t>{5, 6}) : (std::vector<uint64_t>{5}));
        EXPECT_EQ(std::string(error.what()),
                  fmt::format("{0} stage (fake:{1}, blocks {1}-{1}): out of host memory",
                              is_encoder ? "encoder" : "decoder", stage % n()));
      }
    }
    ring->submit(make_step(9));  // nobody is there any more
    EXPECT_THROW(ring->wait(), BatchError);
  }
}

TEST_P(RingOf, AnyMomentIsAGoodOneToStop) {
  std::mt19937 random(11);
  for (int round = 0; round < 40; ++round) {
    Bench bench(n(), kind());
    for (size_t i = 0; i < n(); ++i) {
      const auto pause = microseconds(random() % 200);
      bench.encoders[i]->before = [pause](const auto&) { std::this_thread::sleep_for(pause); };
      bench.decoders[i]->before = [pause](const auto&) { std::this_thread::sleep_for(pause); };
    }
    const auto ring = bench.build();
    const uint64_t most = random() % 20;
    for (uint64_t tag = 0; tag < 20; ++tag) {
      ring->submit(make_step(tag));
      ring->submit(make_encode(tag));
    }
    for (uint64_t i = 0; i < most; ++i) EXPECT_TRUE(ring->wait());
    if (round % 2 == 0) continue;  // destroyed as it is
    std::thread aborter([&] { ring->abort(); });
    while (ring->wait()) {
    }
    aborter.join();
    EXPECT_FALSE(ring->wait());
    EXPECT_EQ(ring->in_flight(), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, RingOf,
                         testing::Combine(testing::Values(1, 2, 3),
                                          testing::Values(FakeKind::kHost, FakeKind::kOther,
                                                          FakeKind::kAsync, FakeKind::kMixed)));

// The steps of a job that asks the head for everything, over more rows than it takes at a time.
struct HeadBench {
  static constexpr int32_t kRows = 150;

  StepResult run(const LogitRequest& request) {
    Bench bench(1);
    const auto ring = bench.build();
    StepJob job = make_step(2, kRows);
    job.request = request;
    ring->submit(std::move(job));
    return std::move(*ring->wait().step);
  }
  // Of the last row of the first i + 1 tokens.
  static std::vector<float> logits(int32_t i) {
    std::vector<int32_t> tokens;
    for (int32_t t = 0; t <= i; ++t) tokens.push_back(20 + t);
    const uint64_t hidden = fake::decode(tokens, {}, 1);
    std::vector<float> row;
    for (int64_t v = 0; v < fake::kVocab; ++v) row.push_back(fake::logit(hidden, v));
    return row;
  }
};

TEST(Head, GivesLogitsAfterEdits) {
  LogitRequest request;
  request.rows = true;
  request.edits = {{.kind = LogitEdit::Kind::kFillRow, .row = 149, .token = 0, .value = 2},
                   {.kind = LogitEdit::Kind::kSet, .row = 3, .token = 5, .value = -7},
                   {.kind = LogitEdit::Kind::kPenalise, .row = 149, .token = 6, .value = 4},
                   {.kind = LogitEdit::Kind::kSet, .row = 70, .token = 1, .value = -9}};
  const StepResult result = HeadBench().run(request);
  ASSERT_EQ(result.n_selected, HeadBench::kRows);
  ASSERT_EQ(result.rows.size(), HeadBench::kRows * fake::kVocab);
  for (int32_t i = 0; i < HeadBench::kRows; ++i) {
    std::vector<float> expected = HeadBench::logits(i);
    if (i == 3) expected[5] = -7;
    if (i == 70) expected[1] = -9;
    if (i == 149) {
      expected.assign(fake::kVocab, 2.0F);
      expected[6] = 0.5F;
    }
    const auto begin = result.rows.begin() + i * fake::kVocab;
    EXPECT_EQ(std::vector<float>(begin, begin + fake::kVocab), expected) << i;
  }
  EXPECT_TRUE(result.ids.empty());
  EXPECT_TRUE(result.picks.empty());
}

TEST(Head, GivesCandidatesAndPicks) {
  LogitRequest request;
  request.top_k = 2;
  request.pick_rows = {149, 0, 64, 64};
  request.pick_tokens = {3, 40, 0, 1};
  const StepResult result = HeadBench().run(request);
  ASSERT_EQ(result.ids.size(), 2 * HeadBench::kRows);
  for (int32_t i = 0; i < HeadBench::kRows; ++i) {
    std::vector<float> logits = HeadBench::logits(i);
    for (size_t k = 0; k < 2; ++k) {
      const auto largest = std::max_element(logits.begin(), logits.end());
      const size_t at = 2 * static_cast<size_t>(i) + k;
      EXPECT_EQ(result.ids[at], largest - logits.begin());
      EXPECT_EQ(result.values[at], *largest);
      *largest = -1;
    }
  }
  EXPECT_EQ(result.picks, (std::vector<float>{HeadBench::logits(149)[3], HeadBench::logits(0)[40],
                                              HeadBench::logits(64)[0], HeadBench::logits(64)[1]}));
  EXPECT_TRUE(result.rows.empty());
}

TEST(Head, PicksOfLogProbabilitiesComeBehindTheRest) {
  LogitRequest request;
  request.rows = true;
  request.picks_log_softmax = true;
  request.edits = {{.kind = LogitEdit::Kind::kFillRow, .row = 149, .token = 0, .value = 0}};
  request.pick_rows = {149};
  request.pick_tokens = {8};
  const StepResult result = HeadBench().run(request);
  EXPECT_EQ(result.rows.back(), 0);
  EXPECT_FLOAT_EQ(result.picks.front(), -std::log(static_cast<float>(fake::kVocab)));
}

// Gates a stage until it is opened.
struct Gate {
  std::mutex mutex;
  std::condition_variable changed;
  bool open = false;

  void pass() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return open; });
  }
  void let_all_by() {
    const std::scoped_lock lock(mutex);
    open = true;
    changed.notify_all();
  }
};

TEST(Ring, StepsGoFirstButEncodesAreNotForgotten) {
  Bench bench(1);
  Gate gate;
  std::string order;
  std::atomic<bool> begun{false};
  bench.encoders[0]->before = [&](const MicroBatch&) {
    begun = true;
    gate.pass();
    order += 'e';
  };
  bench.decoders[0]->before = [&](const StepBatch&) { order += 's'; };
  const auto ring = bench.build();
  ring->submit(make_encode(0));
  while (!begun) std::this_thread::yield();
  for (uint64_t tag = 0; tag < 3; ++tag) ring->submit(make_encode(tag));
  for (uint64_t tag = 0; tag < 20; ++tag) ring->submit(make_step(tag));
  EXPECT_EQ(ring->in_flight(), 24);
  gate.let_all_by();
  uint64_t next_step = 0;
  while (const RingResult result = ring->wait()) {
    if (result.step == nullptr) continue;
    EXPECT_EQ(result.step->tag, next_step++);
  }
  EXPECT_EQ(next_step, 20);
  EXPECT_EQ(order, "essssssssessssssssesssse");
}

TEST(Ring, DevicesWorkAtTheSameTime) {
  // Each stage waits for the other one to be busy with the next step.
  Bench bench(2);
  std::mutex mutex;
  std::condition_variable changed;
  std::array<int64_t, 2> begun = {-1, -1};
  for (size_t s = 0; s < 2; ++s) {
    bench.decoders[s]->before = [&, s](const StepBatch& step) {
      std::unique_lock lock(mutex);
      begun[s] = static_cast<int64_t>(step.prompts.ordinals.front());
      changed.notify_all();
      const int64_t other = begun[s] + (s == 0 ? -1 : 1);
      if (other < 10) changed.wait(lock, [&] { return begun[1 - s] >= other; });
    };
  }
  const auto ring = bench.build();
  for (uint64_t tag = 0; tag < 10; ++tag) ring->submit(make_step(tag));
  for (uint64_t tag = 0; tag < 10; ++tag) EXPECT_EQ(ring->wait().step->tag, tag);
}

TEST(Ring, AFailingLinkNamesItsRecords) {
  Bench bench(2, FakeKind::kOther);
  bench.devices[0]->downloads_until_failure = 2;
  const auto ring = bench.build();
  for (uint64_t tag = 0; tag < 5; ++tag) ring->submit(make_step(tag));
  try {
    while (ring->wait()) {
    }
    FAIL() << "expected BatchError";
  } catch (const BatchError& error) {
    EXPECT_EQ(error.ordinals(), std::vector<uint64_t>{2});
    EXPECT_NE(std::string(error.what()).find("the cable is unplugged"), std::string::npos);
  }
}

TEST(Ring, RefusesWhatCannotWork) {
  const auto refused = [](const std::function<void(Bench&)>& spoil) {
    Bench bench(2);
    spoil(bench);
    EXPECT_THROW(bench.build(), Error);
  };
  refused([](Bench& bench) { bench.parts.clear(); });
  refused([](Bench& bench) { bench.parts[1].device = bench.parts[0].device; });
  refused([](Bench& bench) { bench.parts[0].decoder_range = {0, 2}; });
  refused([](Bench& bench) { bench.parts[1].encoder_range = {2, 3}; });
  refused([](Bench& bench) { bench.parts[0].decoder_range = {1, 1}; });
  refused([](Bench& bench) {
    for (RingDevice& part : bench.parts) part.decoder = nullptr;
  });
  refused([](Bench& bench) {
    bench.parts[1].decoder = nullptr;
    bench.parts[1].encoder = nullptr;
  });
  Bench bench(1);
  bench.parts[0].encoder = nullptr;
  const auto ring = bench.build();
  EXPECT_THROW(ring->submit(make_encode(0)), Error);
  EXPECT_THROW(ring->submit(StepJob{}), Error);
}

TEST(Ring, WritesATrackForEachDevice) {
  const auto path = std::filesystem::path(testing::TempDir()) / "ring_trace.json";
  {
    Trace trace(path);
    Bench bench(2);
    bench.encoders[0]->before = [](const auto&) { std::this_thread::sleep_for(milliseconds(1)); };
    bench.decoders[1]->before = [](const auto&) { std::this_thread::sleep_for(milliseconds(1)); };
    const auto ring = bench.build({.trace = &trace});
    ring->submit(make_encode(0));
    ring->submit(make_step(1));
    while (ring->wait()) {
    }
  }
  std::ifstream file(path);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  for (const char* const part : {"\"fake:0\"", "\"fake:1\"", "\"encode\"", "\"step\""}) {
    EXPECT_NE(text.find(part), std::string::npos) << part;
  }
  std::filesystem::remove(path);
}

// Two lending devices; each job of a stage is 8 pieces of 2 ms that others may run.
TEST(Ring, WaitingDevicesHelp) {
  LendingDevice::Board board;
  for (const bool lend : {true, false}) {
    Bench bench(0);
    std::array<LendingDevice*, 2> devices{};
    for (size_t i = 0; i < 2; ++i) {
      auto device = std::make_unique<LendingDevice>("fake:" + std::to_string(i), board);
      devices[i] = device.get();
      bench.add(std::move(device));
      bench.decoders[i]->before = [device = devices[i]](const StepBatch&) {
        device->share(8, [] { std::this_thread::sleep_for(milliseconds(2)); });
      };
    }
    const auto ring = bench.build({.lend = lend});
    ring->submit(make_step(0));
    EXPECT_TRUE(ring->wait());
    EXPECT_EQ(devices[0]->helped >= 2, lend);
    EXPECT_EQ(devices[1]->helped >= 2, lend);
  }
}

}  // namespace
}  // namespace quintet
