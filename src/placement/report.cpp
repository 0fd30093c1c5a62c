#include "placement/report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "core/human.h"
#include "placement/block_ranges.h"
#include "placement/text_table.h"

namespace quintet {
namespace {

using nlohmann::ordered_json;

// A long device name (a list of cores) is cut in the table; JSON has it whole.
std::string device_name(const std::string& name) { return shortened(name, 22); }

std::string expectation(const Plan& plan) {
  const double rate = plan.tokens_per_second;
  std::string text = fmt::format("expected {} tokens/s with micro-batches of {:.0f} tokens",
                                 readable_rate(rate), plan.tokens_per_batch);
  if (plan.n_batches > 0) {
    text += fmt::format("; {} of them, start and end cost {:.1f} %", plan.n_batches,
                        100 * (1 - plan.fill));
  }
  return text;
}

}  // namespace

std::string plan_table(const Plan& plan, const PlanContext& context) {
  bool has_fixed = false;
  for (const StagePlan& stage : plan.stages) has_fixed = has_fixed || stage.fixed_bytes > 0;
  std::vector<std::vector<std::string>> rows = {{"device", "blocks", "weights", "activations"}};
  if (has_fixed) rows[0].emplace_back("program");
  for (const char* title : {"memory", "time", "busy", "fits"}) rows[0].emplace_back(title);
  for (const StagePlan& stage : plan.stages) {
    auto& row = rows.emplace_back();
    row = {device_name(stage.device), block_range(stage.first_block, stage.last_block),
           human_bytes(stage.weight_bytes), human_bytes(stage.activation_bytes)};
    if (has_fixed) row.push_back(human_bytes(stage.fixed_bytes));
    row.push_back(human_bytes(stage.memory_bytes));
    row.push_back(fmt::format("{:.1f} %", 100 * stage.share));
    row.push_back(fmt::format("{:.0f} %", 100 * stage.utilisation));
    row.emplace_back(stage.fits ? "yes" : "no");
  }
  for (const std::string& device : plan.unused) rows.push_back({device_name(device), "none"});
  std::string text =
      fmt::format("{}: {} blocks in {}\n", context.stack, plan.n_layers, context.dtype);
  text += aligned(rows) + wrapped(expectation(plan));
  if (plan.fits) return text + "fits\n";
  return text + wrapped("does not fit: " + plan.problem) + wrapped(plan.advice);
}

std::string plan_json(const Plan& plan, const PlanContext& context) {
  ordered_json stages = ordered_json::array();
  ordered_json device_map = ordered_json::object();
  for (const auto& [device, blocks] : device_map_of(plan)) device_map[device] = blocks;
  for (const StagePlan& stage : plan.stages) {
    stages.push_back({{"device", stage.device},
                      {"blocks", {stage.first_block, stage.last_block}},
                      {"weight_bytes", stage.weight_bytes},
                      {"activation_bytes", stage.activation_bytes},
                      {"fixed_bytes", stage.fixed_bytes},
                      {"needed_bytes", stage.needed_bytes()},
                      {"memory_bytes", stage.memory_bytes},
                      {"seconds_per_token", stage.seconds_per_token},
                      {"time_share", stage.share},
                      {"utilisation", stage.utilisation},
                      {"fits", stage.fits}});
  }
  const ordered_json value = {{"stack", context.stack},
                              {"dtype", context.dtype},
                              {"n_layers", plan.n_layers},
                              {"fits", plan.fits},
                              {"problem", plan.problem},
                              {"advice", plan.advice},
                              {"tokens_per_second", plan.tokens_per_second},
                              {"tokens_per_batch", plan.tokens_per_batch},
                              {"n_batches", plan.n_batches},
                              {"fill", plan.fill},
                              {"device_map", device_map},
                              {"unused_devices", plan.unused},
                              {"stages", stages}};
  return value.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace quintet
