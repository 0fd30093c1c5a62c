#include "placement/planner.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include "quintet/error.h"

namespace quintet {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr int64_t kMiB = int64_t{1} << 20;

DeviceSpec device(const std::string& name, double gigaflops, int64_t memory) {
  DeviceSpec spec;
  spec.name = name;
  spec.flops_per_second = gigaflops * 1e9;
  spec.attention_flops_per_second = gigaflops * 0.5e9;
  spec.bytes_per_second = 1e10;
  spec.memory_bytes = memory;
  return spec;
}

// Equal blocks of 10 MiB (20 M flops per token), activations of 1 KiB per token.
StackCost stack(int64_t n_layers) {
  StackCost cost;
  BlockCost block;
  block.weight_bytes = 10 * kMiB;
  block.weight_params = 10 * kMiB / 4;
  block.flops_per_token = 2e7;
  block.attention_flops_per_token_key = 4096;
  cost.blocks.assign(static_cast<size_t>(n_layers), block);
  cost.first_bytes = 5 * kMiB;
  cost.last_bytes = 4096;
  cost.per_stage_bytes = 1024;
  cost.d_model = 256;
  cost.activation_bytes_per_token = 1024;
  cost.activation_bytes_per_tile_row = 4096;
  cost.activation_bytes_per_max_len = 64;
  cost.tile_rows = 128;
  return cost;
}

StackCost half(StackCost cost) {
  for (BlockCost& block : cost.blocks) block.weight_bytes /= 2;
  cost.first_bytes /= 2;
  return cost;
}

LengthProfile lengths(std::vector<int32_t> of_records, int64_t n_records = 0) {
  LengthProfile profile;
  profile.lengths = std::move(of_records);
  profile.n_records = n_records;
  return profile;
}

TEST(Planner, EqualDevicesGetEqualParts) {
  const Plan plan = plan_stages(
      stack(12), {device("a", 90, 1000 * kMiB), device("b", 90, 1000 * kMiB)}, lengths({300}));
  EXPECT_TRUE(plan.fits);
  EXPECT_EQ(device_map_of(plan), get_device_map(12, {"a", "b"}));
  EXPECT_DOUBLE_EQ(plan.stages[0].utilisation, 1);
  EXPECT_DOUBLE_EQ(plan.stages[1].share, 0.5);
  EXPECT_TRUE(plan.problem.empty());
  EXPECT_TRUE(plan.advice.empty());
}

// By hand: 2e7 flops per token at 1e9/s and 300 keys at 4096 flops each at 0.5e9/s, twice.
TEST(Planner, TimesAreFlopsOverSpeeds) {
  const Plan plan = plan_stages(stack(2), {device("a", 1, 1000 * kMiB)}, lengths({300, 300}));
  const double expected = 2 * (2e7 / 1e9 + 300 * 4096 / 0.5e9);
  EXPECT_NEAR(plan.stages[0].seconds_per_token, expected, 1e-12);
  EXPECT_NEAR(plan.tokens_per_second, 1 / expected, 1e-9);
}

// Tokens attend to the keys of their own sequence: (100 * 100 + 300 * 300) / 400 on average.
TEST(Planner, LongSequencesWeighByTheirTokens) {
  const Plan plan = plan_stages(stack(1), {device("a", 1, 1000 * kMiB)}, lengths({100, 300}));
  EXPECT_NEAR(plan.stages[0].seconds_per_token, 2e7 / 1e9 + 250 * 4096 / 0.5e9, 1e-12);
}

// Eight tokens cannot hide that 10 MiB of weights come at 1e10 bytes per second.
TEST(Planner, FewTokensAreBoundByStreamingWeights) {
  auto profile = lengths({8}, 1);
  const Plan plan = plan_stages(stack(1), {device("a", 1e6, 1000 * kMiB)}, profile);
  EXPECT_NEAR(plan.stages[0].seconds_per_token, 10.0 * kMiB / 1e10 / 8, 1e-9);
}

TEST(Planner, UnequalDevicesAutoBeatsEven) {
  const std::vector<DeviceSpec> devices = {device("slow", 30, 1000 * kMiB),
                                           device("fast", 90, 1000 * kMiB)};
  const auto cost = stack(12);
  const Plan automatic = plan_stages(cost, devices, lengths({300}));
  const Plan even =
      evaluate_map(cost, get_device_map(12, {"slow", "fast"}), devices, lengths({300}));
  EXPECT_EQ(automatic.stages[0].last_block, 3);
  EXPECT_NEAR(automatic.tokens_per_second / even.tokens_per_second, 2.0, 1e-9);
  EXPECT_NEAR(even.stages[1].utilisation, 1.0 / 3, 1e-9);
}

TEST(Planner, ADeviceThatOnlySlowsTheLineIsLeftOut) {
  const Plan plan =
      plan_stages(stack(4), {device("fast", 100, 1000 * kMiB), device("snail", 1, 1000 * kMiB)},
                  lengths({300}));
  EXPECT_EQ(plan.stages.size(), 1U);
  EXPECT_THAT(plan.unused, testing::ElementsAre("snail"));
}

TEST(Planner, ADeviceTooSmallForABlockIsLeftOut) {
  const Plan plan = plan_stages(
      stack(4), {device("tiny", 90, 3 * kMiB), device("big", 90, 1000 * kMiB)}, lengths({300}));
  EXPECT_TRUE(plan.fits);
  EXPECT_EQ(plan.stages[0].device, "big");
}

TEST(Planner, MemoryLimitsMoveBlocks) {
  const Plan plan = plan_stages(
      stack(6), {device("a", 90, 23 * kMiB), device("b", 90, 1000 * kMiB)}, lengths({300}));
  EXPECT_TRUE(plan.fits);
  EXPECT_EQ(plan.stages[0].last_block, 1);  // 5 MiB of embeddings, 10 MiB per block, activations
  EXPECT_LE(plan.stages[0].needed_bytes(), 23 * kMiB);
}

TEST(Planner, BytesAreCounted) {
  auto cost = stack(3);
  cost.blocks[2].activation_bytes_per_max_len = 16;
  auto profile = lengths({300, 700});
  profile.tokens_per_batch = 512;
  profile.batches_in_flight = 3;
  const Plan plan =
      evaluate_map(cost, {{"a", {0}}, {"b", {1, 2}}},
                   {device("a", 1, 1000 * kMiB), device("b", 1, 1000 * kMiB)}, profile);
  EXPECT_EQ(plan.stages[0].weight_bytes, 15 * kMiB + 1024);
  EXPECT_EQ(plan.stages[1].weight_bytes, 20 * kMiB + 4096 + 1024);
  EXPECT_EQ(plan.stages[0].activation_bytes, 700 * 1024 + 128 * 4096 + 700 * 64);
  EXPECT_EQ(plan.stages[1].activation_bytes,
            700 * 1024 + 128 * 4096 + 700 * (64 + 16) + 2 * 700 * 256 * 4);
}

// The hidden states of one more micro-batch, in every dtype float32.
TEST(Planner, AnAsynchronousDeviceHasTwoMicroBatchesUnderWay) {
  const auto profile = lengths({300, 700});
  std::vector<DeviceSpec> devices = {device("a", 1, 1000 * kMiB), device("b", 1, 1000 * kMiB)};
  const DeviceMap map = {{"a", {0}}, {"b", {1, 2}}};
  const Plan before = evaluate_map(stack(3), map, devices, profile);
  devices[0].asynchronous = true;
  const Plan plan = evaluate_map(stack(3), map, devices, profile);
  EXPECT_EQ(plan.stages[0].activation_bytes,
            before.stages[0].activation_bytes + int64_t{700} * 256 * 4);
  EXPECT_EQ(plan.stages[1].activation_bytes, before.stages[1].activation_bytes);
  EXPECT_EQ(plan.stages[0].weight_bytes, before.stages[0].weight_bytes);
}

// One of 24 blocks on a device 23.5 times slower makes the line 24 / 23.5 times faster on paper,
// two on one 10 times slower 24 / 22 times.
TEST(Planner, ADeviceThatHardlyHelpsIsLeftOut) {
  const DeviceSpec fast = device("fast", 100, 1000 * kMiB);
  const auto beside = [&](double gigaflops) {
    return plan_stages(stack(24), {fast, device("slow", gigaflops, 1000 * kMiB)}, lengths({300}));
  };
  EXPECT_EQ(beside(100 / 23.5).stages.size(), 1U);
  EXPECT_EQ(beside(10).stages.size(), 2U);
}

// A single micro-batch passes two devices no sooner than one. CPU devices help each other with it.
TEST(Planner, FillingTheLineCountsWhereADeviceIsAsynchronous) {
  std::vector<DeviceSpec> devices = {device("a", 90, 1000 * kMiB), device("b", 90, 1000 * kMiB)};
  const auto stages = [&](int64_t n_records) {
    return plan_stages(stack(12), devices, lengths({300}, n_records)).stages.size();
  };
  EXPECT_EQ(stages(1), 2U);
  devices[1].asynchronous = true;
  EXPECT_EQ(stages(1), 1U);
  EXPECT_EQ(stages(100), 2U);
}

// A head as dear as two blocks, tied to the embedding table: it is work of the last stage, and its
// table counts twice only where the ends are apart.
TEST(Planner, AHeadCountsAsWorkAndItsTableOnce) {
  auto cost = stack(4);
  cost.last_bytes = 5 * kMiB;
  cost.shared_bytes = 5 * kMiB;
  cost.last_params = 5 * kMiB / 4;
  cost.last_flops_per_token = 2 * 2e7;
  for (BlockCost& block : cost.blocks) block.attention_flops_per_token_key = 0;
  const std::vector<DeviceSpec> two = {device("a", 1, 1000 * kMiB), device("b", 1, 1000 * kMiB)};
  const Plan plan = plan_stages(cost, two, lengths({300}));
  EXPECT_EQ(plan.stages[0].last_block, 3);
  EXPECT_NEAR(plan.stages[0].seconds_per_token, plan.stages[1].seconds_per_token, 1e-12);
  EXPECT_EQ(plan.stages[0].weight_bytes, 35 * kMiB + 1024);
  EXPECT_EQ(plan.stages[1].weight_bytes, 15 * kMiB + 1024);
  const Plan one = plan_stages(cost, {two[0]}, lengths({300}));
  EXPECT_EQ(one.stages[0].weight_bytes, 45 * kMiB + 1024);
}

// 10 records of 300 under a budget of 600 are 5 micro-batches: 5 of (5 + 2 - 1) slots.
TEST(Planner, AFiniteRunHasAStartAndAnEnd) {
  auto profile = lengths({300}, 10);
  profile.tokens_per_batch = 600;
  const Plan plan =
      plan_stages(stack(2), {device("a", 90, 1000 * kMiB), device("b", 90, 1000 * kMiB)}, profile);
  EXPECT_EQ(plan.n_batches, 5);
  EXPECT_DOUBLE_EQ(plan.fill, 5.0 / 6);
  EXPECT_DOUBLE_EQ(plan.stages[1].utilisation, 5.0 / 6);
}

TEST(Planner, FixedBytesCountOncePerPool) {
  std::vector<DeviceSpec> devices = {device("a", 90, 50 * kMiB), device("b", 90, 50 * kMiB)};
  for (DeviceSpec& spec : devices) {
    spec.fixed_bytes = 10 * kMiB;
    spec.memory_pool = "host";
    spec.pool_bytes = 60 * kMiB;
  }
  EXPECT_TRUE(plan_stages(stack(4), devices, lengths({300})).fits);
  for (DeviceSpec& spec : devices) spec.pool_bytes = 50 * kMiB;
  const Plan plan = plan_stages(stack(4), devices, lengths({300}));
  EXPECT_FALSE(plan.fits);
  EXPECT_THAT(plan.problem, HasSubstr("a, b together need"));
}

// Two devices of a full pool and one outside: what does not fit in the pool goes outside.
TEST(Planner, AFullPoolSendsBlocksElsewhere) {
  std::vector<DeviceSpec> devices = {device("a", 90, 60 * kMiB), device("b", 90, 60 * kMiB),
                                     device("gpu", 90, 1000 * kMiB)};
  for (size_t d = 0; d < 2; ++d) {
    devices[d].memory_pool = "host";
    devices[d].pool_bytes = 60 * kMiB;
  }
  const Plan plan = plan_stages(stack(12), devices, lengths({300}));
  ASSERT_TRUE(plan.fits) << plan.problem;
  int64_t host = 0;
  for (const StagePlan& stage : plan.stages) {
    if (stage.device != "gpu") host += stage.weight_bytes + stage.activation_bytes;
  }
  EXPECT_LE(host, 60 * kMiB);
}

// All splits in order over all subsets of devices, by way of evaluate_map.
double best_by_force(const StackCost& cost, const std::vector<DeviceSpec>& devices,
                     const LengthProfile& profile) {
  const auto n = static_cast<int64_t>(cost.blocks.size());
  double best = 0;
  const std::function<void(size_t, int64_t, DeviceMap)> visit = [&](size_t d, int64_t first,
                                                                    DeviceMap map) {
    if (first == n) {
      const Plan plan = evaluate_map(cost, map, devices, profile);
      if (plan.fits) best = std::max(best, plan.tokens_per_second);
      return;
    }
    if (d == devices.size()) return;
    visit(d + 1, first, map);
    std::vector<int64_t> blocks;
    for (int64_t last = first + 1; last <= n; ++last) {
      blocks.push_back(last - 1);
      DeviceMap longer = map;
      longer.emplace_back(devices[d].name, blocks);
      visit(d + 1, last, longer);
    }
  };
  visit(0, 0, {});
  return best;
}

TEST(Planner, EqualsBruteForceOnRandomStacks) {
  std::mt19937 random(11);
  int infeasible = 0;
  for (int round = 0; round < 60; ++round) {
    auto cost = stack(1 + static_cast<int64_t>(random() % 6));
    for (BlockCost& block : cost.blocks) {
      block.weight_bytes = kMiB * static_cast<int64_t>(1 + random() % 12);
      block.flops_per_token = 1e6 * static_cast<double>(1 + random() % 20);
    }
    std::vector<DeviceSpec> devices;
    const size_t n_devices = 1 + random() % 3;
    for (size_t d = 0; d < n_devices; ++d) {
      devices.push_back(device(fmt::format("d{}", d), 1.0 + static_cast<double>(random() % 90),
                               kMiB * static_cast<int64_t>(10 + random() % 40)));
    }
    const auto profile = lengths({100, 200, static_cast<int32_t>(1 + random() % 2000)});
    const double best = best_by_force(cost, devices, profile);
    const Plan plan = plan_stages(cost, devices, profile);
    if (best == 0) ++infeasible;
    EXPECT_EQ(plan.fits, best > 0) << "round " << round;
    if (best > 0) {
      EXPECT_NEAR(plan.tokens_per_second / best, 1, 1e-9) << "round " << round;
    }
  }
  EXPECT_GT(infeasible, 3);
  EXPECT_LT(infeasible, 50);
}

TEST(Planner, WhatDoesNotFitComesWithWhatWould) {
  const auto cost = stack(10);
  PlanContext context;
  context.other_dtypes = {{"bfloat16", half(cost)}};
  const Plan plan = plan_stages(cost, {device("cpu:0", 90, 80 * kMiB)}, lengths({300}), context);
  EXPECT_FALSE(plan.fits);
  EXPECT_THAT(plan.problem, AllOf(HasSubstr("cpu:0: encoder blocks 0-9 need 10"),
                                  HasSubstr("MiB in float32"), HasSubstr("80.0 MiB is available")));
  EXPECT_THAT(plan.advice,
              AllOf(HasSubstr("cpu:0 holds 7 of these 10 blocks"), HasSubstr("--dtype bfloat16"),
                    Not(HasSubstr("tokens-per-batch")), HasSubstr("another device with 3")));
}

TEST(Planner, AdviceOnMicroBatchesIsTried) {
  const auto cost = stack(4);  // 45 MiB of weights
  auto profile = lengths({30});
  profile.tokens_per_batch = 8192;  // 8 MiB of activations
  const std::vector<DeviceSpec> devices = {device("cpu:0", 90, 50 * kMiB)};
  const Plan plan = plan_stages(cost, devices, profile);
  ASSERT_FALSE(plan.fits);
  EXPECT_THAT(plan.advice, HasSubstr("--tokens-per-batch 4096"));
  profile.tokens_per_batch = 4096;
  EXPECT_TRUE(plan_stages(cost, devices, profile).fits);
}

TEST(Planner, AdviceOnLongRecordsIsTried) {
  auto profile = lengths({30, 40000});
  const std::vector<DeviceSpec> devices = {device("cpu:0", 90, 60 * kMiB)};
  const Plan plan = plan_stages(stack(4), devices, profile);
  ASSERT_FALSE(plan.fits);
  const size_t at = plan.advice.find("--max-tokens ");
  ASSERT_NE(at, std::string::npos) << plan.advice;
  const int32_t limit = std::stoi(plan.advice.substr(at + 13));
  profile.lengths = {30, limit};
  EXPECT_TRUE(plan_stages(stack(4), devices, profile).fits);
  profile.lengths = {30, limit + 1};
  EXPECT_FALSE(plan_stages(stack(4), devices, profile).fits);
}

TEST(Planner, AMapThatDoesNotFitWhereAnotherWould) {
  const std::vector<DeviceSpec> devices = {device("a", 90, 30 * kMiB), device("b", 90, 500 * kMiB)};
  const Plan plan = evaluate_map(stack(8), get_device_map(8, {"a", "b"}), devices, lengths({300}));
  EXPECT_FALSE(plan.fits);
  EXPECT_FALSE(plan.stages[0].fits);
  EXPECT_TRUE(plan.stages[1].fits);
  EXPECT_THAT(plan.advice,
              AllOf(HasSubstr("a holds 2 of these 4 blocks"), HasSubstr("--device-map auto")));
}

TEST(Planner, RefusesWhatCannotBePlanned) {
  EXPECT_THROW(plan_stages(stack(2), {}, lengths({1})), Error);
  EXPECT_THROW(plan_stages(StackCost{}, {device("a", 1, 1)}, lengths({1})), Error);
  EXPECT_THROW(plan_stages(stack(1), {device("a", 0, 1)}, lengths({1})), Error);
  EXPECT_THROW(evaluate_map(stack(2), {{"a", {0}}}, {device("a", 1, 1)}, lengths({1})), Error);
  try {
    evaluate_map(stack(2), {{"c", {0, 1}}}, {device("a", 1, 1), device("b", 1, 1)}, lengths({1}));
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kDevice);
    EXPECT_THAT(error.what(), HasSubstr("'c' is not among the devices in use: a, b"));
  }
}

}  // namespace
}  // namespace quintet
