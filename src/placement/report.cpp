#include "placement/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/human.h"
#include "placement/block_ranges.h"

namespace quintet {
namespace {

using nlohmann::ordered_json;

constexpr size_t kMaxWidth = 100;

std::string human(int64_t bytes) { return human_bytes(static_cast<double>(bytes)); }

// Columns as wide as their widest cell, the first left-aligned, the others right.
std::string aligned(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (size_t c = 0; c < row.size(); ++c) {
      line += c == 0 ? fmt::format("{:<{}}", row[c], widths[c])
                     : fmt::format("  {:>{}}", row[c], widths[c]);
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

// Breaks `text` at blanks into lines of at most kMaxWidth columns.
std::string wrapped(const std::string& text) {
  std::string out;
  size_t begin = 0;
  while (text.size() - begin > kMaxWidth) {
    size_t end = text.rfind(' ', begin + kMaxWidth);
    if (end == std::string::npos || end <= begin) end = text.find(' ', begin);
    if (end == std::string::npos) break;
    out += text.substr(begin, end - begin) + "\n";
    begin = end + 1;
  }
  return out + text.substr(begin) + "\n";
}

// A long device name (a list of cores) is cut in the table; JSON has it whole.
std::string short_name(const std::string& name) {
  constexpr size_t kLongest = 22;
  return name.size() <= kLongest ? name : name.substr(0, kLongest - 3) + "...";
}

// 12346 -> "12,346"
std::string thousands(int64_t value) {
  if (value < 1000) return fmt::format("{}", value);
  return fmt::format("{},{:03}", thousands(value / 1000), value % 1000);
}

std::string expectation(const Plan& plan) {
  const double rate = plan.tokens_per_second;
  std::string text =
      fmt::format("expected {} tokens/s with micro-batches of {:.0f} tokens",
                  rate >= 100 ? thousands(std::llround(rate)) : fmt::format("{:.3g}", rate),
                  plan.tokens_per_batch);
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
    row = {short_name(stage.device), block_range(stage.first_block, stage.last_block),
           human(stage.weight_bytes), human(stage.activation_bytes)};
    if (has_fixed) row.push_back(human(stage.fixed_bytes));
    row.push_back(human(stage.memory_bytes));
    row.push_back(fmt::format("{:.1f} %", 100 * stage.share));
    row.push_back(fmt::format("{:.0f} %", 100 * stage.utilisation));
    row.emplace_back(stage.fits ? "yes" : "no");
  }
  for (const std::string& device : plan.unused) rows.push_back({short_name(device), "none"});
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
