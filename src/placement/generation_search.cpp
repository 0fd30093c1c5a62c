#include "placement/generation_search.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "placement/memory_pools.h"

namespace quintet {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int64_t kUsualRows = 32;  // of a group: from about here on products are bound by flops

// Smaller groups, or a ring of fewer stages, must be faster by this to be preferred.
constexpr double kWorthIt = 1.01;

// Sizes of groups worth trying, in records, largest first: what is asked for, then less.
std::vector<int64_t> group_sizes(const GenerationProfile& profile, int64_t n_groups) {
  const int64_t rows = profile.rows_per_group > 0 ? profile.rows_per_group : kUsualRows;
  int64_t most = std::max<int64_t>(1, rows / profile.rows_per_record);
  if (profile.rows_per_group == 0 && profile.n_records > 0) {
    most = std::min(most, (profile.n_records + n_groups - 1) / n_groups);
  }
  std::vector<int64_t> sizes = {most};
  for (int64_t power = int64_t{1} << 20; power > 0; power /= 2) {
    for (const int64_t size : {power + power / 2, power}) {
      if (size < sizes.back()) sizes.push_back(size);
    }
  }
  return sizes;
}

GroupSetting setting_of(const GenerationProfile& profile, size_t n_stages, int64_t size) {
  return {.n_groups = std::max(profile.n_groups, static_cast<int64_t>(n_stages)),
          .records_per_group = size};
}

void add_stage(StackPlan& stack, const std::string& device, const BlockSpan& blocks,
               int64_t weight_bytes, double seconds) {
  if (blocks.empty()) return;
  stack.stages.push_back({.device = device,
                          .first_block = blocks.first,
                          .last_block = blocks.last,
                          .weight_bytes = weight_bytes,
                          .seconds_per_record = seconds});
}

void add_device(GenerationPlan& plan, const GenerationModel& model, const DeviceSpec& spec,
                size_t d, const JointRun& run) {
  const DeviceBytes bytes = model.bytes(d, run);
  DevicePlan device;
  device.device = spec.name;
  device.weight_bytes = bytes.weights;
  device.cache_bytes = bytes.caches;
  device.activation_bytes = bytes.activations;
  device.fixed_bytes = spec.fixed_bytes;
  device.memory_bytes = spec.memory_bytes;
  device.seconds_per_record = model.seconds(d, run);
  device.fits = device.needed_bytes() <= device.memory_bytes;
  plan.fits = plan.fits && device.fits;
  plan.devices.push_back(device);
  add_stage(plan.encoder, spec.name, run.encoder, model.encoder_weights(run.encoder),
            model.encoder_seconds(d, run.encoder));
  add_stage(plan.decoder, spec.name, run.decoder, model.decoder_weights(run.decoder),
            model.decoder_seconds(d, run.decoder));
}

void set_rates(GenerationPlan& plan, const GenerationModel& model,
               const GenerationProfile& profile) {
  double slowest = 0;
  double sum = 0;
  double decoding = 0;
  for (const DevicePlan& device : plan.devices) {
    slowest = std::max(slowest, device.seconds_per_record);
    sum += device.seconds_per_record;
  }
  for (StackPlan* stack : {&plan.encoder, &plan.decoder}) {
    for (StackStage& stage : stack->stages) stage.share = stage.seconds_per_record / sum;
  }
  for (const StackStage& stage : plan.decoder.stages) decoding += stage.seconds_per_record;
  const double rate = model.records_per_second(slowest, decoding);
  plan.records_per_second = rate;
  for (DevicePlan& device : plan.devices) {
    device.utilisation = device.seconds_per_record * rate;
  }
  const double each = rate / static_cast<double>(profile.records.size());
  for (const ExpectedGeneration& record : profile.records) {
    plan.source_tokens_per_second += each * record.source_tokens;
    plan.prompt_tokens_per_second += each * record.prompt_tokens;
    plan.new_tokens_per_second +=
        each * record.new_tokens * static_cast<double>(profile.rows_per_record);
  }
}

bool pools_hold(const GenerationPlan& plan, const std::vector<DeviceSpec>& devices) {
  std::vector<DeviceUse> uses;
  for (const DevicePlan& device : plan.devices) {
    uses.push_back({.device = device.device,
                    .bytes = device.needed_bytes() - device.fixed_bytes,
                    .fixed = device.fixed_bytes});
  }
  return full_pools(uses, devices).empty();
}

GenerationPlan plan_of_runs(const GenerationCase& given, const GenerationModel& model,
                            const std::vector<JointRun>& runs) {
  GenerationPlan plan;
  plan.encoder.n_layers = model.n_encoder();
  plan.decoder.n_layers = model.n_decoder();
  plan.n_groups = model.setting().n_groups;
  plan.rows_per_record = given.profile.rows_per_record;
  plan.rows_per_group = model.setting().records_per_group * plan.rows_per_record;
  plan.self_pages = model.self_pages();
  plan.cross_pages = model.cross_pages();
  for (size_t d = 0; d < runs.size(); ++d) {
    if (runs[d].empty()) {
      plan.unused.push_back(given.devices[d].name);
    } else {
      add_device(plan, model, given.devices[d], d, runs[d]);
    }
  }
  for (StackPlan* stack : {&plan.encoder, &plan.decoder}) {
    std::ranges::sort(stack->stages, {}, &StackStage::first_block);  // given maps take any order
  }
  set_rates(plan, model, given.profile);
  plan.fits = plan.fits && pools_hold(plan, given.devices);
  return plan;
}

// The fastest split under each device's own memory and `shares`, further limits in bytes.
JointSplit fastest(const GenerationCase& given, const GenerationModel& model, size_t max_stages,
                   const std::vector<int64_t>& shares) {
  const auto price = [&](size_t d, const JointRun& run) {
    const int64_t limit = std::min(given.devices[d].memory_bytes, shares[d]);
    return model.needed_bytes(d, run) > limit ? kInfinity : model.seconds(d, run);
  };
  return search_joint_split(model.n_encoder(), model.n_decoder(), given.devices.size(), max_stages,
                            price);
}

std::vector<int64_t> no_shares(const GenerationCase& given) {
  return std::vector<int64_t>(given.devices.size(), std::numeric_limits<int64_t>::max());
}

// Seconds per record of the slowest device, were memory no matter.
double ideal_seconds(const GenerationCase& given, const GenerationModel& model, size_t max_stages) {
  const auto price = [&](size_t d, const JointRun& run) { return model.seconds(d, run); };
  return search_joint_split(model.n_encoder(), model.n_decoder(), given.devices.size(), max_stages,
                            price)
      .worst;
}

struct Found {
  GenerationPlan plan;
  std::vector<JointRun> runs;
};

// With equal shares of a pool where the fastest split asks too much of it.
std::optional<Found> best_fitting(const GenerationCase& given, const GenerationModel& model,
                                  size_t max_stages) {
  for (const auto& shares : {no_shares(given), equal_pool_shares(given.devices)}) {
    JointSplit split = fastest(given, model, max_stages, shares);
    if (split.runs.empty()) return std::nullopt;
    GenerationPlan plan = plan_of_runs(given, model, split.runs);
    if (plan.fits) return Found{std::move(plan), std::move(split.runs)};
  }
  return std::nullopt;
}

// Whether there is a split under each device's own memory; pools aside.
bool devices_hold(const GenerationCase& given, const GenerationModel& model, size_t max_stages) {
  const auto price = [&](size_t d, const JointRun& run) {
    return model.needed_bytes(d, run) > given.devices[d].memory_bytes ? kInfinity : 0.0;
  };
  return !search_joint_split(model.n_encoder(), model.n_decoder(), given.devices.size(), max_stages,
                             price)
              .runs.empty();
}

// The least need over memory on the fullest device, groups being of one record.
GenerationPlan least_overfull(const GenerationCase& given) {
  std::optional<GenerationPlan> best;
  double least = kInfinity;
  for (size_t stages = given.devices.size(); stages > 0; --stages) {
    const GenerationModel model(given.stacks, given.devices, given.profile,
                                setting_of(given.profile, stages, 1));
    const auto price = [&](size_t d, const JointRun& run) {
      return static_cast<double>(model.needed_bytes(d, run)) /
             static_cast<double>(std::max<int64_t>(1, given.devices[d].memory_bytes));
    };
    const JointSplit split = search_joint_split(model.n_encoder(), model.n_decoder(),
                                                given.devices.size(), stages, price);
    if (split.worst >= least) continue;
    least = split.worst;
    best = plan_of_runs(given, model, split.runs);
  }
  return *best;
}

}  // namespace

GenerationPlan search_generation(const GenerationCase& given) {
  std::optional<Found> best;
  const auto worth = [&](double rate) {
    return !best || rate > best->plan.records_per_second * kWorthIt;
  };
  for (size_t stages = given.devices.size(); stages > 0; --stages) {
    const int64_t n_groups = setting_of(given.profile, stages, 1).n_groups;
    for (const int64_t size : group_sizes(given.profile, n_groups)) {
      const GenerationModel model(given.stacks, given.devices, given.profile,
                                  setting_of(given.profile, stages, size));
      if (!devices_hold(given, model, stages)) continue;
      const double ideal = 1 / ideal_seconds(given, model, stages);
      if (!worth(ideal)) break;  // still smaller groups are no faster
      auto found = best_fitting(given, model, stages);
      if (found && worth(found->plan.records_per_second)) best = std::move(found);
      if (!worth(ideal)) break;
    }
  }
  if (!best) return least_overfull(given);
  // A ring for more stages than were of use needs fewer groups.
  const auto n_stages = static_cast<int64_t>(best->plan.decoder.stages.size());
  if (std::max(n_stages, given.profile.n_groups) == best->plan.n_groups) return best->plan;
  return plan_of_split(given, best->runs);
}

GenerationPlan plan_of_split(const GenerationCase& given, const std::vector<JointRun>& runs) {
  const auto stages = static_cast<size_t>(
      std::count_if(runs.begin(), runs.end(), [](const auto& r) { return !r.decoder.empty(); }));
  const int64_t n_groups = setting_of(given.profile, stages, 1).n_groups;
  GenerationPlan plan;
  for (const int64_t size : group_sizes(given.profile, n_groups)) {
    const GenerationModel model(given.stacks, given.devices, given.profile,
                                setting_of(given.profile, stages, size));
    plan = plan_of_runs(given, model, runs);
    if (plan.fits) break;
  }
  return plan;
}

bool can_fit(const GenerationCase& given) {
  const bool has_pools = std::ranges::any_of(
      given.devices, [](const DeviceSpec& device) { return !device.memory_pool.empty(); });
  for (size_t stages = given.devices.size(); stages > 0; --stages) {
    const GenerationModel model(given.stacks, given.devices, given.profile,
                                setting_of(given.profile, stages, 1));
    if (!devices_hold(given, model, stages)) continue;
    if (!has_pools || best_fitting(given, model, stages)) return true;
  }
  return false;
}

}  // namespace quintet
