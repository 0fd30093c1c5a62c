#include "placement/generation_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "core/error.h"
#include "core/human.h"
#include "placement/advice.h"
#include "placement/block_ranges.h"
#include "placement/generation_search.h"
#include "placement/memory_pools.h"

namespace quintet {
namespace {

constexpr int64_t kSmallestBatch = 64;  // tokens; below it, products run at a fraction of the speed

using Fits = std::function<bool(const GenerationCase&)>;

void check_arguments(const GenerationStacks& stacks, const std::vector<DeviceSpec>& devices,
                     const GenerationProfile& profile) {
  if (devices.empty()) fail(ErrorKind::kUsage, "no devices to plan for; name one, such as cpu:0");
  if (stacks.decoder.blocks.empty() || (stacks.encoder && stacks.encoder->blocks.empty())) {
    fail(ErrorKind::kUsage, "a stack without blocks cannot be laid out");
  }
  if (profile.records.empty() || profile.rows_per_record < 1) {
    fail(ErrorKind::kUsage, "{} expected records of {} rows; a plan needs at least one of one row",
         profile.records.size(), profile.rows_per_record);
  }
}

void put_blocks(std::vector<JointRun>& runs, const DeviceMap& map,
                const std::vector<DeviceSpec>& devices, BlockSpan JointRun::*stack) {
  for (const auto& [name, blocks] : map) {
    runs[device_index(devices, name)].*stack = {.first = blocks.front(), .last = blocks.back() + 1};
  }
}

// A device that holds blocks of one stack alone has an empty span of the other.
std::vector<JointRun> runs_of_maps(const StackMaps& maps, const std::vector<DeviceSpec>& devices) {
  std::vector<JointRun> runs(devices.size());
  put_blocks(runs, maps.encoder, devices, &JointRun::encoder);
  put_blocks(runs, maps.decoder, devices, &JointRun::decoder);
  return runs;
}

const StackStage* stage_on(const StackPlan& stack, const std::string& device) {
  for (const StackStage& stage : stack.stages) {
    if (stage.device == device) return &stage;
  }
  return nullptr;
}

std::string blocks_on(const GenerationPlan& plan, const std::string& device) {
  std::string text;
  const std::pair<const char*, const StackPlan*> stacks[] = {{"encoder", &plan.encoder},
                                                             {"decoder", &plan.decoder}};
  for (const auto& [name, stack] : stacks) {
    const StackStage* stage = stage_on(*stack, device);
    if (stage == nullptr) continue;
    text += fmt::format("{}{} block{} {}", text.empty() ? "" : " and ", name,
                        stage->last_block - stage->first_block == 1 ? "" : "s",
                        block_range(stage->first_block, stage->last_block));
  }
  return text;
}

std::string describe_problem(const GenerationPlan& plan, const std::vector<DeviceSpec>& devices,
                             const std::string& dtype) {
  std::string text;
  std::vector<DeviceUse> uses;
  for (const DevicePlan& device : plan.devices) {
    uses.push_back({.device = device.device,
                    .bytes = device.needed_bytes() - device.fixed_bytes,
                    .fixed = device.fixed_bytes});
    if (device.fits) continue;
    std::string parts = human_bytes(device.weight_bytes) + " of weights";
    if (device.cache_bytes > 0) {
      parts +=
          fmt::format(", {} of caches for {} group{} of {} row{}", human_bytes(device.cache_bytes),
                      plan.n_groups, plan.n_groups == 1 ? "" : "s", plan.rows_per_group,
                      plan.rows_per_group == 1 ? "" : "s");
    }
    parts += fmt::format(", {} of activations", human_bytes(device.activation_bytes));
    if (device.fixed_bytes > 0) {
      parts += fmt::format(", {} of the program itself", human_bytes(device.fixed_bytes));
    }
    text += fmt::format("{}{}: {} need {} in {} ({}), {} is available", text.empty() ? "" : "; ",
                        device.device, blocks_on(plan, device.device),
                        human_bytes(device.needed_bytes()), dtype, parts,
                        human_bytes(device.memory_bytes));
  }
  for (const PoolUse& pool : full_pools(uses, devices)) {
    text += (text.empty() ? "" : "; ") + describe_pool(pool, dtype);
  }
  return text;
}

// The largest smaller budget of tokens under which it fits; 0: none.
int64_t fitting_batch(const GenerationCase& now, const Fits& fits) {
  GenerationProfile profile = now.profile;
  int64_t tokens = std::max(profile.prompt_tokens_per_step, profile.encode_tokens_per_batch);
  while (tokens / 2 >= kSmallestBatch) {
    tokens /= 2;
    profile.prompt_tokens_per_step = std::min(now.profile.prompt_tokens_per_step, tokens);
    profile.encode_tokens_per_batch = std::min(now.profile.encode_tokens_per_batch, tokens);
    if (fits({now.stacks, now.devices, profile})) return tokens;
  }
  return 0;
}

// `as_asked` tells whether a case fits with the maps that the user gave (or the planner's own).
std::string advise(const GenerationCase& now, const GenerationContext& context, bool maps_given,
                   const Fits& as_asked) {
  std::vector<std::string> ways;
  if (maps_given && can_fit(now)) ways.emplace_back("--device-map auto");
  for (const auto& [dtype, stacks] : context.other_dtypes) {
    if (dtype == context.dtype || !as_asked({stacks, now.devices, now.profile})) continue;
    ways.push_back("--dtype " + dtype);
    break;
  }
  if (const int64_t tokens = fitting_batch(now, as_asked); tokens > 0) {
    ways.push_back(fmt::format("--tokens-per-batch {}", tokens));
  }
  const auto with_devices = [&](const std::vector<DeviceSpec>& devices) {
    return can_fit({now.stacks, devices, now.profile});
  };
  if (const int64_t bytes = extra_device_bytes(now.devices, with_devices); bytes > 0) {
    ways.push_back(fmt::format("another device with {} free", human_bytes(bytes)));
  }
  return what_would_fit(ways);
}

// Says where groups are not what was asked for.
std::string note_on_rows(const GenerationPlan& plan, const GenerationProfile& profile) {
  const int64_t wanted = profile.rows_per_group;
  if (!plan.fits || wanted == 0) return "";
  if (wanted < profile.rows_per_record) {
    return fmt::format("groups have {} rows, {} asked for: one record has so many",
                       plan.rows_per_group, wanted);
  }
  const int64_t whole = wanted / profile.rows_per_record * profile.rows_per_record;
  if (plan.rows_per_group < whole) {
    return fmt::format("groups have {} rows of the {} asked for: with more the caches do not fit",
                       plan.rows_per_group, wanted);
  }
  if (whole < wanted) {
    return fmt::format("groups have {} rows of the {} asked for: a record has {}, all in one group",
                       whole, wanted, profile.rows_per_record);
  }
  return "";
}

void explain(GenerationPlan& plan, const GenerationCase& now, const GenerationContext& context,
             bool maps_given, const Fits& as_asked) {
  plan.note = note_on_rows(plan, now.profile);
  if (plan.fits) return;
  plan.problem = describe_problem(plan, now.devices, context.dtype);
  plan.advice = advise(now, context, maps_given, as_asked);
}

}  // namespace

DeviceMap StackPlan::device_map() const {
  DeviceMap map;
  for (const StackStage& stage : stages) {
    map.emplace_back(stage.device, block_list(stage.first_block, stage.last_block));
  }
  return map;
}

GenerationPlan plan_generation(const GenerationStacks& stacks,
                               const std::vector<DeviceSpec>& devices,
                               const GenerationProfile& profile, const GenerationContext& context) {
  check_arguments(stacks, devices, profile);
  const GenerationCase now{stacks, devices, profile};
  GenerationPlan plan = search_generation(now);
  explain(plan, now, context, false, can_fit);
  return plan;
}

GenerationPlan evaluate_generation_maps(const GenerationStacks& stacks, const StackMaps& maps,
                                        const std::vector<DeviceSpec>& devices,
                                        const GenerationProfile& profile,
                                        const GenerationContext& context) {
  check_arguments(stacks, devices, profile);
  if (!stacks.encoder && !maps.encoder.empty()) {
    fail(ErrorKind::kUsage, "a device map for the encoder, and there is none");
  }
  if (stacks.encoder) {
    assert_device_map(maps.encoder, static_cast<int64_t>(stacks.encoder->blocks.size()), "encoder");
  }
  assert_device_map(maps.decoder, static_cast<int64_t>(stacks.decoder.blocks.size()), "decoder");
  const GenerationCase now{stacks, devices, profile};
  const std::vector<JointRun> runs = runs_of_maps(maps, devices);
  GenerationPlan plan = plan_of_split(now, runs);
  explain(plan, now, context, true,
          [&](const GenerationCase& given) { return plan_of_split(given, runs).fits; });
  return plan;
}

}  // namespace quintet
