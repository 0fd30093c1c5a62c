#include "placement/generation_plan.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <functional>
#include <random>

#include "quintet/error.h"

namespace quintet {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kGiB = int64_t{1} << 30;

DeviceSpec device(const std::string& name, double gigaflops = 100, int64_t memory = 8 * kGiB) {
  DeviceSpec spec;
  spec.name = name;
  spec.flops_per_second = gigaflops * 1e9;
  spec.attention_flops_per_second = gigaflops * 0.5e9;
  spec.bytes_per_second = 1e10;
  spec.memory_bytes = memory;
  return spec;
}

// A decoder of GPT-2's shape in float32, without attention's own flops: 12 d^2 in each block, the
// table of vocab_size rows tied to the head.
StackCost gpt2(int64_t n_layers, int64_t d_model, int64_t vocab_size) {
  StackCost cost;
  BlockCost block;
  block.weight_params = 12 * d_model * d_model;
  block.weight_bytes = block.weight_params * 4;
  block.flops_per_token = 2 * static_cast<double>(block.weight_params);
  block.cache_bytes_per_page = 2 * 24 * d_model * 4;
  cost.blocks.assign(static_cast<size_t>(n_layers), block);
  cost.last_params = vocab_size * d_model;
  cost.first_bytes = cost.last_params * 4;
  cost.last_bytes = cost.last_params * 4;
  cost.shared_bytes = cost.last_bytes;
  cost.last_flops_per_token = 2 * static_cast<double>(cost.last_params);
  cost.d_model = d_model;
  cost.activation_bytes_per_token = 8 * static_cast<double>(d_model);
  return cost;
}

// 124M: 768 wide, 12 blocks, 50257 tokens.
GenerationStacks gpt2_small() { return {.encoder = {}, .decoder = gpt2(12, 768, 50257)}; }

GenerationProfile prompts(int32_t prompt_tokens, int32_t new_tokens, int64_t n_records = 0) {
  GenerationProfile profile;
  profile.records = {{.source_tokens = 0,
                      .prompt_tokens = prompt_tokens,
                      .new_tokens = new_tokens,
                      .self_pages = (prompt_tokens + new_tokens - 1 + 23) / 24,
                      .cross_pages = 0}};
  profile.n_records = n_records;
  return profile;
}

int64_t blocks(const StackStage& stage) { return stage.last_block - stage.first_block; }

GenerationStacks without_attention(GenerationStacks stacks) {
  for (BlockCost& block : stacks.decoder.blocks) block.cache_bytes_per_page = 0;
  return stacks;
}

// The head is worth 50257 / (12 * 768) = 5.45 blocks: 17.45 in all, 8.73 for each of two devices.
TEST(GenerationPlan, TheHeadOfGpt2IsWork) {
  const GenerationPlan plan =
      plan_generation(without_attention(gpt2_small()), {device("a"), device("b")}, prompts(1, 64));
  ASSERT_TRUE(plan.fits) << plan.problem;
  ASSERT_EQ(plan.decoder.stages.size(), 2U);
  EXPECT_EQ(blocks(plan.decoder.stages[0]), 9);
  EXPECT_EQ(blocks(plan.decoder.stages[1]), 3);
  EXPECT_TRUE(plan.encoder.stages.empty());
  EXPECT_EQ(plan.n_groups, 2);
  EXPECT_DOUBLE_EQ(plan.devices[0].utilisation, 1);
  EXPECT_NEAR(plan.devices[1].utilisation, (3 + 5.453) / 9, 1e-2);
  EXPECT_NEAR(plan.decoder.stages[0].share + plan.decoder.stages[1].share, 1, 1e-12);
}

TEST(GenerationPlan, ATiedTableIsHeldOnceOnOneDevice) {
  const GenerationStacks stacks = without_attention(gpt2_small());
  const int64_t table = 50257 * 768 * 4;
  const int64_t block = 12 * 768 * 768 * 4;
  const GenerationPlan one = plan_generation(stacks, {device("a")}, prompts(1, 64));
  EXPECT_EQ(one.devices[0].weight_bytes, 12 * block + table);
  EXPECT_EQ(one.n_groups, 1);
  const GenerationPlan two = plan_generation(stacks, {device("a"), device("b")}, prompts(1, 64));
  EXPECT_EQ(two.devices[0].weight_bytes, 9 * block + table);
  EXPECT_EQ(two.devices[1].weight_bytes, 3 * block + table);
}

// One sequence: each new token streams all weights, 163,037,184 parameters in float32.
TEST(GenerationPlan, OneSequenceIsBoundByReadingWeights) {
  const double params = 12 * 12 * 768.0 * 768 + 50257 * 768.0;
  const auto stacks = without_attention(gpt2_small());
  const GenerationPlan plan = plan_generation(stacks, {device("a")}, prompts(1, 64, 1));
  EXPECT_EQ(plan.rows_per_group, 1);
  EXPECT_NEAR(plan.new_tokens_per_second, 1e10 / (4 * params), 1e-6);
  // Over two devices it passes one after the other: no faster.
  const GenerationPlan two = plan_generation(stacks, {device("a"), device("b")}, prompts(1, 64, 1));
  EXPECT_NEAR(two.new_tokens_per_second, plan.new_tokens_per_second, 1e-6);
}

// Where rows are many, flops count: 2 * params for each token.
TEST(GenerationPlan, FullGroupsAreBoundByFlops) {
  const double params = 12 * 12 * 768.0 * 768 + 50257 * 768.0;
  const auto stacks = without_attention(gpt2_small());
  auto profile = prompts(1, 64);
  const GenerationPlan plan = plan_generation(stacks, {device("a", 10)}, profile);
  EXPECT_EQ(plan.rows_per_group, 32);
  EXPECT_NEAR(plan.new_tokens_per_second / (10e9 / (2 * params)), 1, 1e-9);
}

// By hand: prompt of 10, 3 new tokens, one row, alone; steps have 11 and 12 keys.
TEST(GenerationPlan, AttentionReadsItsCaches) {
  GenerationStacks stacks{.encoder = {}, .decoder = gpt2(1, 64, 0)};
  BlockCost& block = stacks.decoder.blocks[0];
  block.weight_bytes = 0;
  block.flops_per_token = 0;
  block.attention_flops_per_token_key = 256;
  block.cache_bytes_per_page = 24 * 512;
  const GenerationPlan plan = plan_generation(stacks, {device("a", 1000)}, prompts(10, 3, 1));
  const double by_flops = 256 * 55 / 500e9;
  const double by_bytes = 512 * (11 + 12) / 1e10;
  EXPECT_NEAR(plan.devices[0].seconds_per_record / (by_flops + by_bytes), 1, 1e-9);
}

// A step of scoring is its prompts: the head sees each token, or the last one alone.
TEST(GenerationPlan, ScoringHasNoSteps) {
  GenerationStacks stacks{.encoder = {}, .decoder = gpt2(2, 64, 1000)};
  auto profile = prompts(512, 1);
  profile.records[0].self_pages = 0;
  profile.scores_prompts = true;
  const GenerationPlan plan = plan_generation(stacks, {device("a", 1)}, profile);
  const double flops = 512 * 2 * (2 * 12 * 64.0 * 64 + 1000 * 64.0);
  EXPECT_NEAR(plan.devices[0].seconds_per_record / (flops / 1e9), 1, 1e-9);
  EXPECT_EQ(plan.devices[0].cache_bytes, 0);
  EXPECT_NEAR(plan.prompt_tokens_per_second, 512 / (flops / 1e9), 1e-6);
}

// 9 blocks * 2 * 24 * 768 * 4 bytes a page; 2 groups of 32 rows; 40 + 64 - 1 keys are 5 pages.
TEST(GenerationPlan, CachesAreCounted) {
  const GenerationPlan plan =
      plan_generation(gpt2_small(), {device("a"), device("b")}, prompts(40, 64));
  EXPECT_EQ(plan.rows_per_group, 32);
  EXPECT_EQ(plan.self_pages, 2 * 32 * 5);
  const int64_t page = 2 * 24 * 768 * 4;
  EXPECT_EQ(plan.devices[0].cache_bytes, blocks(plan.decoder.stages[0]) * page * 2 * 32 * 5);
}

// All records are known: what is under way at once needs no more than the largest of them.
TEST(GenerationPlan, PagesAreTheWorstOfTheRecordsUnderWay) {
  auto profile = prompts(1, 64, 4);
  profile.records.assign(4, profile.records[0]);
  for (size_t i = 0; i < 4; ++i) {
    profile.records[i].self_pages = static_cast<int64_t>(i) + 1;
    profile.records[i].cross_pages = 10 * (static_cast<int64_t>(i) + 1);
  }
  profile.rows_per_group = 2;
  const GenerationPlan plan = plan_generation(gpt2_small(), {device("a")}, profile);
  EXPECT_EQ(plan.rows_per_group, 2);
  EXPECT_EQ(plan.self_pages, 4 + 3);
  EXPECT_EQ(plan.cross_pages, 40 + 30);
  profile.n_records = 100;  // of which these are a sample
  EXPECT_EQ(plan_generation(gpt2_small(), {device("a")}, profile).self_pages, 4 + 4);
}

TEST(GenerationPlan, FewRecordsShareOutOverTheGroups) {
  const GenerationPlan plan =
      plan_generation(gpt2_small(), {device("a"), device("b")}, prompts(40, 64, 32));
  EXPECT_EQ(plan.n_groups, 2);
  EXPECT_EQ(plan.rows_per_group, 16);
  auto beams = prompts(40, 64, 100);
  beams.rows_per_record = 5;
  EXPECT_EQ(plan_generation(gpt2_small(), {device("a")}, beams).rows_per_group, 30);
}

TEST(GenerationPlan, FewerRowsAreTakenAndSaid) {
  auto profile = prompts(40, 64);
  profile.rows_per_group = 64;
  const int64_t weights = 12 * 12 * 768 * 768 * 4 + 50257 * 768 * 4;
  const int64_t record = 12 * int64_t{2 * 24 * 768 * 4} * 5;
  const std::vector<DeviceSpec> devices = {device("a", 100, weights + 30 * record)};
  const GenerationPlan plan = plan_generation(gpt2_small(), devices, profile);
  EXPECT_TRUE(plan.fits);
  EXPECT_EQ(plan.rows_per_group, 24);
  EXPECT_THAT(plan.note, HasSubstr("24 rows of the 64 asked for"));
  EXPECT_LE(plan.devices[0].needed_bytes(), devices[0].memory_bytes);
  profile.rows_per_group = 24;
  EXPECT_EQ(plan_generation(gpt2_small(), devices, profile).note, "");
}

// As of T5: the encoder on one side, the decoder reading its output on the other.
GenerationStacks t5(int64_t n_encoder, int64_t n_decoder) {
  StackCost encoder = gpt2(n_encoder, 512, 0);
  encoder.first_bytes = encoder.last_bytes = encoder.shared_bytes = 32128 * 512 * 4;
  encoder.last_bytes = encoder.shared_bytes = 0;
  for (BlockCost& block : encoder.blocks) block.cache_bytes_per_page = 0;
  StackCost decoder = gpt2(n_decoder, 512, 32128);
  for (BlockCost& block : decoder.blocks) {
    block.source_weight_bytes = 2 * 512 * 512 * 4;
    block.weight_bytes += block.source_weight_bytes;
    block.flops_per_source_token = 2 * 2 * 512 * 512;
    block.attention_flops_per_token_key = 4 * 512;
  }
  return {.encoder = std::move(encoder), .decoder = std::move(decoder)};
}

GenerationProfile translations(int32_t source, int32_t new_tokens) {
  GenerationProfile profile;
  profile.records = {{.source_tokens = source,
                      .prompt_tokens = 1,
                      .new_tokens = new_tokens,
                      .self_pages = (new_tokens + 23) / 24,
                      .cross_pages = (source + 23) / 24}};
  return profile;
}

TEST(GenerationPlan, BothStacksAreBalancedTogether) {
  const std::vector<DeviceSpec> devices = {device("a"), device("b")};
  const GenerationPlan plan = plan_generation(t5(12, 12), devices, translations(200, 40));
  ASSERT_TRUE(plan.fits) << plan.problem;
  EXPECT_GT(plan.devices[0].utilisation, 0.93);
  EXPECT_GT(plan.devices[1].utilisation, 0.93);
  double shares = 0;
  for (const auto* stack : {&plan.encoder, &plan.decoder}) {
    for (const StackStage& stage : stack->stages) shares += stage.share;
  }
  EXPECT_NEAR(shares, 1, 1e-12);
  const GenerationPlan even =
      evaluate_generation_maps(t5(12, 12), stack_maps(parse_device_map("even"), 12, 12, {"a", "b"}),
                               devices, translations(200, 40));
  EXPECT_GE(plan.records_per_second, even.records_per_second);
  EXPECT_EQ(even.encoder.device_map(), get_device_map(12, {"a", "b"}));
}

// 512 wide: rows of 2112 bytes. Two records to a group, one group: the output of four waits on the
// encoder's device, that of two at each decoder stage.
TEST(GenerationPlan, EncodedRowsThatWaitAreCounted) {
  GenerationStacks stacks = t5(2, 2);
  for (StackCost* cost : {&*stacks.encoder, &stacks.decoder}) cost->activation_bytes_per_token = 0;
  stacks.decoder.last_params = 0;  // no logits
  auto profile = translations(100, 24);
  profile.rows_per_group = 2;
  const GenerationPlan plan =
      evaluate_generation_maps(stacks, {.encoder = {{"a", {0, 1}}}, .decoder = {{"b", {0, 1}}}},
                               {device("a"), device("b")}, profile);
  EXPECT_EQ(plan.devices[0].activation_bytes, 4 * 100 * 2112);
  EXPECT_EQ(plan.devices[1].activation_bytes, 2 * 100 * 2112);
  EXPECT_EQ(plan.self_pages, 2);
  EXPECT_EQ(plan.cross_pages, 2 * 5);
  EXPECT_EQ(plan.devices[0].cache_bytes, 0);
  EXPECT_EQ(plan.devices[1].cache_bytes, 2 * (2 + 2 * 5) * int64_t{2 * 24 * 512 * 4});
}

// Long sources, short targets: one device may be left to the encoder alone.
TEST(GenerationPlan, ADeviceMayHoldOneStackAlone) {
  const GenerationPlan plan =
      plan_generation(t5(12, 2), {device("a"), device("b"), device("c")}, translations(2000, 2));
  EXPECT_LT(plan.decoder.stages.size(), 3U);
  EXPECT_EQ(plan.n_groups, static_cast<int64_t>(plan.decoder.stages.size()));
  EXPECT_EQ(plan.devices.size(), 3U);
}

// Of all splits and all sizes of groups that plan_generation tries, by way of given maps.
double best_by_force(const GenerationStacks& stacks, const std::vector<DeviceSpec>& devices,
                     const GenerationProfile& profile) {
  const auto n_encoder = stacks.encoder ? static_cast<int64_t>(stacks.encoder->blocks.size()) : 0;
  const auto n_decoder = static_cast<int64_t>(stacks.decoder.blocks.size());
  double best = 0;
  const std::function<void(size_t, int64_t, int64_t, StackMaps)> visit =
      [&](size_t d, int64_t e, int64_t l, const StackMaps& maps) {
        if (e == n_encoder && l == n_decoder) {
          const GenerationPlan plan = evaluate_generation_maps(stacks, maps, devices, profile);
          if (plan.fits) best = std::max(best, plan.records_per_second);
          return;
        }
        if (d == devices.size()) return;
        std::vector<int64_t> of_encoder;
        for (int64_t to_e = e; to_e <= n_encoder; ++to_e) {
          std::vector<int64_t> of_decoder;
          for (int64_t to_l = l; to_l <= n_decoder; ++to_l) {
            StackMaps longer = maps;
            if (to_e > e) longer.encoder.emplace_back(devices[d].name, of_encoder);
            if (to_l > l) longer.decoder.emplace_back(devices[d].name, of_decoder);
            visit(d + 1, to_e, to_l, longer);
            of_decoder.push_back(to_l);
          }
          of_encoder.push_back(to_e);
        }
      };
  visit(0, 0, 0, {});
  return best;
}

TEST(GenerationPlan, EqualsBruteForceOnRandomStacks) {
  std::mt19937 random(17);
  const auto upto = [&](uint32_t n) { return static_cast<int64_t>(1 + random() % n); };
  int infeasible = 0;
  for (int round = 0; round < 60; ++round) {
    GenerationStacks stacks = t5(upto(3), upto(3));
    if (round % 3 == 0) stacks.encoder.reset();
    for (BlockCost& block : stacks.decoder.blocks) {
      block.flops_per_token = static_cast<double>(upto(40)) * 1e6;
      block.weight_bytes = upto(30) * kMiB + block.source_weight_bytes;
    }
    std::vector<DeviceSpec> devices;
    const int64_t n_devices = upto(3);
    for (int64_t d = 0; d < n_devices; ++d) {
      devices.push_back(
          device(fmt::format("d{}", d), static_cast<double>(upto(50)), (70 + upto(90)) * kMiB));
    }
    GenerationProfile profile =
        translations(static_cast<int32_t>(upto(300)), static_cast<int32_t>(upto(60)));
    profile.rows_per_record = upto(4);
    profile.rows_per_group = profile.rows_per_record;  // of one size, so that the rest is exact
    if (!stacks.encoder) profile.records[0].source_tokens = 0;
    if (!stacks.encoder) profile.records[0].cross_pages = 0;
    const double best = best_by_force(stacks, devices, profile);
    const GenerationPlan plan = plan_generation(stacks, devices, profile);
    if (best == 0) ++infeasible;
    EXPECT_EQ(plan.fits, best > 0) << "round " << round;
    // Fewer stages are preferred to a gain of less than one in a hundred.
    if (best > 0) {
      EXPECT_GT(plan.records_per_second / best, 1 / 1.0101) << "round " << round;
      EXPECT_LT(plan.records_per_second / best, 1 + 1e-9) << "round " << round;
    }
  }
  EXPECT_GT(infeasible, 3);
  EXPECT_LT(infeasible, 50);
}

TEST(GenerationPlan, WhatDoesNotFitComesWithWhatWould) {
  const GenerationStacks stacks = gpt2_small();
  GenerationStacks half = stacks;
  for (BlockCost& block : half.decoder.blocks) block.weight_bytes /= 2;
  half.decoder.first_bytes /= 2;
  half.decoder.last_bytes /= 2;
  half.decoder.shared_bytes /= 2;
  GenerationContext context;
  context.other_dtypes = {{"bfloat16", half}};
  const GenerationPlan plan =
      plan_generation(stacks, {device("cpu:0", 100, 400 * kMiB)}, prompts(40, 64), context);
  EXPECT_FALSE(plan.fits);
  EXPECT_THAT(plan.problem,
              AllOf(HasSubstr("cpu:0: decoder blocks 0-11 need"), HasSubstr("in float32"),
                    HasSubstr("caches for 1 group of 1 row"), HasSubstr("400 MiB is available")));
  EXPECT_THAT(plan.advice, AllOf(HasSubstr("--dtype bfloat16"), HasSubstr("another device with")));
}

TEST(GenerationPlan, AMapThatDoesNotFitWhereAnotherWould) {
  const GenerationPlan plan = evaluate_generation_maps(
      gpt2_small(), {.encoder = {}, .decoder = get_device_map(12, {"a", "b"})},
      {device("a", 100, 250 * kMiB), device("b", 100, 2 * kGiB)}, prompts(40, 64));
  EXPECT_FALSE(plan.fits);
  EXPECT_FALSE(plan.devices[0].fits);
  EXPECT_TRUE(plan.devices[1].fits);
  EXPECT_THAT(plan.advice, HasSubstr("--device-map auto"));
}

TEST(GenerationPlan, DeepStacksOnSeveralDevicesTakeLittleTime) {
  std::vector<DeviceSpec> devices;
  for (int d = 0; d < 4; ++d) {
    devices.push_back(device(fmt::format("d{}", d), 50 + 10 * d, 170 * kMiB));
  }
  const std::clock_t begin = std::clock();
  const GenerationPlan plan = plan_generation(t5(24, 24), devices, translations(200, 100));
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  EXPECT_FALSE(plan.fits);
  EXPECT_THAT(plan.advice, HasSubstr("another device with"));
  EXPECT_LT(seconds, 10.0);
}

// A pool that holds the model once and its tied table once more only just.
TEST(GenerationPlan, DevicesOfOneMemoryShareIt) {
  std::vector<DeviceSpec> devices = {device("a"), device("b")};
  const auto with_pool = [&](int64_t bytes) {
    for (DeviceSpec& spec : devices) {
      spec.memory_pool = "host";
      spec.pool_bytes = spec.memory_bytes = bytes;
    }
    return plan_generation(gpt2_small(), devices, prompts(40, 64));
  };
  EXPECT_EQ(with_pool(4 * kGiB).devices.size(), 2U);
  const GenerationPlan one = with_pool(560 * kMiB);
  EXPECT_TRUE(one.fits) << one.problem;
  EXPECT_EQ(one.devices.size(), 1U);
  const GenerationPlan none = with_pool(400 * kMiB);
  EXPECT_FALSE(none.fits);
}

TEST(GenerationPlan, GivenMapsMayTakeDevicesInAnyOrder) {
  const StackMaps maps = {.encoder = {{"b", {0, 1}}, {"a", {2}}}, .decoder = {{"a", {0, 1}}}};
  const GenerationPlan plan = evaluate_generation_maps(
      t5(3, 2), maps, {device("a"), device("b"), device("c")}, translations(100, 10));
  EXPECT_EQ(plan.encoder.device_map(), maps.encoder);
  EXPECT_EQ(plan.decoder.device_map(), maps.decoder);
  EXPECT_EQ(plan.n_groups, 1);
  EXPECT_THAT(plan.unused, testing::ElementsAre("c"));
}

TEST(GenerationPlan, RefusesWhatCannotBePlanned) {
  const auto stacks = gpt2_small();
  EXPECT_THROW(plan_generation(stacks, {}, prompts(1, 1)), Error);
  EXPECT_THROW(plan_generation({}, {device("a")}, prompts(1, 1)), Error);
  EXPECT_THROW(plan_generation(stacks, {device("a")}, {}), Error);
  EXPECT_THROW(plan_generation(stacks, {device("a", 0)}, prompts(1, 1)), Error);
  const StackMaps whole = {.encoder = {}, .decoder = get_device_map(12, {"a"})};
  EXPECT_NO_THROW(evaluate_generation_maps(stacks, whole, {device("a")}, prompts(1, 1)));
  EXPECT_THROW(evaluate_generation_maps(stacks, {whole.decoder, whole.decoder}, {device("a")},
                                        prompts(1, 1)),
               Error);
  EXPECT_THROW(evaluate_generation_maps(t5(2, 12), whole, {device("a")}, translations(1, 1)),
               Error);
}

}  // namespace
}  // namespace quintet
