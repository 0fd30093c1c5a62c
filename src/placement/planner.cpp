#include "placement/planner.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "core/error.h"
#include "core/human.h"
#include "placement/advice.h"
#include "placement/block_ranges.h"
#include "placement/memory_pools.h"
#include "placement/split_search.h"
#include "placement/stage_model.h"

namespace quintet {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<PoolUse> full_pools_of(const Plan& plan, const std::vector<DeviceSpec>& devices) {
  std::vector<DeviceUse> uses;
  for (const StagePlan& stage : plan.stages) {
    uses.push_back({.device = stage.device,
                    .bytes = stage.weight_bytes + stage.activation_bytes,
                    .fixed = stage.fixed_bytes});
  }
  return full_pools(uses, devices);
}

// Times of a run with n micro-batches: the first one passes every stage in turn, the others follow
// at the pace of the slowest.
void set_times(Plan& plan, const StageModel& model) {
  double slowest = 0;
  double sum = 0;
  for (const StagePlan& stage : plan.stages) {
    slowest = std::max(slowest, stage.seconds_per_token);
    sum += stage.seconds_per_token;
  }
  plan.tokens_per_batch = model.tokens_per_batch();
  plan.n_batches = model.n_batches();
  const auto n = static_cast<double>(plan.n_batches);
  plan.fill = plan.n_batches == 0 ? 1.0 : n * slowest / (sum + (n - 1) * slowest);
  plan.tokens_per_second = plan.fill / slowest;
  for (StagePlan& stage : plan.stages) {
    stage.share = stage.seconds_per_token / sum;
    stage.utilisation = stage.seconds_per_token / slowest * plan.fill;
  }
}

Plan plan_of_runs(const std::vector<BlockRun>& runs, const StageModel& model,
                  const std::vector<DeviceSpec>& devices) {
  Plan plan;
  plan.n_layers = model.n_layers();
  std::vector<bool> used(devices.size(), false);
  for (const BlockRun& run : runs) {
    const DeviceSpec& device = devices[run.device];
    StagePlan stage;
    stage.device = device.name;
    stage.first_block = run.first;
    stage.last_block = run.last;
    stage.weight_bytes = model.weight_bytes(run.first, run.last);
    stage.activation_bytes = model.activation_bytes(run.device, run.first, run.last);
    stage.fixed_bytes = device.fixed_bytes;
    stage.memory_bytes = device.memory_bytes;
    stage.seconds_per_token = model.seconds_per_token(run.device, run.first, run.last);
    stage.fits = stage.needed_bytes() <= stage.memory_bytes;
    plan.fits = plan.fits && stage.fits;
    plan.stages.push_back(stage);
    used[run.device] = true;
  }
  for (size_t d = 0; d < devices.size(); ++d) {
    if (!used[d]) plan.unused.push_back(devices[d].name);
  }
  set_times(plan, model);
  plan.fits = plan.fits && full_pools_of(plan, devices).empty();
  return plan;
}

// The fastest split under each device's own memory and `shares`, further limits in bytes; nothing
// where there is none.
std::optional<Plan> best_fitting(const StageModel& model, const std::vector<DeviceSpec>& devices,
                                 size_t max_devices, const std::vector<int64_t>& shares) {
  const auto price = [&](size_t d, int64_t first, int64_t last) {
    const int64_t limit = std::min(devices[d].memory_bytes, shares[d]);
    if (model.needed_bytes(d, first, last) > limit) return kInfinity;
    return model.seconds_per_token(d, first, last);
  };
  const SplitResult split = search_split(model.n_layers(), devices.size(), max_devices, price);
  if (split.runs.empty()) return std::nullopt;
  return plan_of_runs(split.runs, model, devices);
}

// What plans are compared by. Devices that work on host memory help one another while a line of
// them fills and drains; an asynchronous device does not.
double worth(const Plan& plan, const std::vector<DeviceSpec>& devices) {
  const bool idles = std::ranges::any_of(plan.stages, [&](const StagePlan& stage) {
    return devices[device_index(devices, stage.device)].asynchronous;
  });
  return idles ? plan.tokens_per_second : plan.tokens_per_second / plan.fill;
}

// A further device must promise so much: its link, and the work that it makes for the host beside
// devices that compute there, are not in the plan.
constexpr double kFurtherDevice = 1.03;

// The fewest devices that come close to the fastest split. Where a pool is too small for a split,
// fewer devices may fit (each keeps activations of its own), or an equal share of the pool for each
// of its devices.
std::optional<Plan> best_within_pools(const StageModel& model,
                                      const std::vector<DeviceSpec>& devices) {
  const std::vector<int64_t> unlimited(devices.size(), std::numeric_limits<int64_t>::max());
  std::optional<Plan> best;
  const auto consider = [&](std::optional<Plan> plan) {
    if (!plan || !plan->fits) return;
    if (!best || worth(*plan, devices) > kFurtherDevice * worth(*best, devices)) {
      best = std::move(plan);
    }
  };
  for (size_t limit = 1; limit <= devices.size(); ++limit) {
    consider(best_fitting(model, devices, limit, unlimited));
  }
  consider(best_fitting(model, devices, devices.size(), equal_pool_shares(devices)));
  return best;
}

// The split that comes closest to fitting: the least need over memory on the fullest device.
Plan least_overfull(const StageModel& model, const std::vector<DeviceSpec>& devices) {
  const auto price = [&](size_t d, int64_t first, int64_t last) {
    return static_cast<double>(model.needed_bytes(d, first, last)) /
           static_cast<double>(std::max<int64_t>(1, devices[d].memory_bytes));
  };
  return plan_of_runs(search_split(model.n_layers(), devices.size(), devices.size(), price).runs,
                      model, devices);
}

Plan plan_without_advice(const StackCost& cost, const std::vector<DeviceSpec>& devices,
                         const LengthProfile& profile) {
  const StageModel model(cost, devices, profile);
  if (auto plan = best_within_pools(model, devices)) return *plan;
  return least_overfull(model, devices);
}

std::vector<BlockRun> runs_of_map(const DeviceMap& device_map,
                                  const std::vector<DeviceSpec>& devices) {
  std::vector<BlockRun> runs;
  for (const auto& [name, blocks] : order_device_map(device_map)) {
    runs.push_back({.device = device_index(devices, name),
                    .first = blocks.front(),
                    .last = blocks.back() + 1});
  }
  return runs;
}

std::string describe_problem(const Plan& plan, const std::vector<DeviceSpec>& devices,
                             const PlanContext& context) {
  std::string text;
  for (const StagePlan& stage : plan.stages) {
    if (stage.fits) continue;
    const int64_t count = stage.last_block - stage.first_block;
    text += fmt::format(
        "{}{}: {} block{} {} need{} {} in {} ({} of weights, {} of activations{}), {} is available",
        text.empty() ? "" : "; ", stage.device, context.stack, count == 1 ? "" : "s",
        block_range(stage.first_block, stage.last_block), count == 1 ? "s" : "",
        human_bytes(stage.needed_bytes()), context.dtype, human_bytes(stage.weight_bytes),
        human_bytes(stage.activation_bytes),
        stage.fixed_bytes > 0 ? ", " + human_bytes(stage.fixed_bytes) + " of the program itself"
                              : "",
        human_bytes(stage.memory_bytes));
  }
  for (const PoolUse& pool : full_pools_of(plan, devices)) {
    text += (text.empty() ? "" : "; ") + describe_pool(pool, context.dtype);
  }
  return text;
}

// How many blocks from its first one a device that is too full could hold.
std::string fewer_blocks(const Plan& plan, const StageModel& model,
                         const std::vector<DeviceSpec>& devices) {
  std::string text;
  for (const StagePlan& stage : plan.stages) {
    if (stage.fits) continue;
    const size_t d = device_index(devices, stage.device);
    int64_t last = stage.last_block;
    while (last > stage.first_block &&
           model.needed_bytes(d, stage.first_block, last) > stage.memory_bytes) {
      --last;
    }
    const int64_t count = last - stage.first_block;
    text += fmt::format("{}{} holds {} of these {} blocks", text.empty() ? "" : ", ", stage.device,
                        count == 0 ? "none" : fmt::format("{}", count),
                        stage.last_block - stage.first_block);
  }
  return text;
}

void explain(Plan& plan, const Trial& now, const PlanContext& context,
             const DeviceMap* device_map) {
  if (plan.fits) return;
  const FitsFunction freely = [](const Trial& trial) {
    return plan_without_advice(trial.cost, trial.devices, trial.profile).fits;
  };
  const FitsFunction as_given = [&](const Trial& trial) {
    const StageModel model(trial.cost, trial.devices, trial.profile);
    return plan_of_runs(runs_of_map(*device_map, trial.devices), model, trial.devices).fits;
  };
  const StageModel model(now.cost, now.devices, now.profile);
  plan.problem = describe_problem(plan, now.devices, context);
  const std::string fewer = fewer_blocks(plan, model, now.devices);
  const bool given = device_map != nullptr;
  plan.advice = fewer + (fewer.empty() ? "" : "; ") +
                advise(now, context, given, given ? as_given : freely, freely);
}

void check_arguments(const StackCost& cost, const std::vector<DeviceSpec>& devices) {
  if (devices.empty()) fail(ErrorKind::kUsage, "no devices to plan for; name one, such as cpu:0");
  if (cost.blocks.empty()) fail(ErrorKind::kUsage, "a stack without blocks cannot be laid out");
}

}  // namespace

DeviceSpec device_spec(std::string name, const DeviceSpeed& speed, DType dtype,
                       int64_t memory_bytes) {
  DeviceSpec spec;
  spec.name = std::move(name);
  spec.flops_per_second = speed.product_flops(dtype);
  spec.attention_flops_per_second = speed.attention_flops;
  spec.bytes_per_second = speed.bytes_per_second;
  spec.memory_bytes = memory_bytes;
  return spec;
}

size_t device_index(const std::vector<DeviceSpec>& devices, const std::string& name) {
  size_t d = 0;
  while (d < devices.size() && devices[d].name != name) ++d;
  if (d < devices.size()) return d;
  std::string known;
  for (const DeviceSpec& device : devices) known += (known.empty() ? "" : ", ") + device.name;
  fail(ErrorKind::kDevice, "device map: '{}' is not among the devices in use: {}", name, known);
}

Plan plan_stages(const StackCost& cost, const std::vector<DeviceSpec>& devices,
                 const LengthProfile& profile, const PlanContext& context) {
  check_arguments(cost, devices);
  Plan plan = plan_without_advice(cost, devices, profile);
  explain(plan, {cost, devices, profile}, context, nullptr);
  return plan;
}

Plan evaluate_map(const StackCost& cost, const DeviceMap& device_map,
                  const std::vector<DeviceSpec>& devices, const LengthProfile& profile,
                  const PlanContext& context) {
  check_arguments(cost, devices);
  assert_device_map(device_map, static_cast<int64_t>(cost.blocks.size()), context.stack);
  const StageModel model(cost, devices, profile);
  Plan plan = plan_of_runs(runs_of_map(device_map, devices), model, devices);
  explain(plan, {cost, devices, profile}, context, &device_map);
  return plan;
}

DeviceMap device_map_of(const Plan& plan) {
  DeviceMap device_map;
  for (const StagePlan& stage : plan.stages) {
    device_map.emplace_back(stage.device, block_list(stage.first_block, stage.last_block));
  }
  return device_map;
}

}  // namespace quintet
