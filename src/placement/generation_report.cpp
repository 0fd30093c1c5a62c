#include "placement/generation_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/human.h"
#include "core/step_batch.h"
#include "placement/block_ranges.h"
#include "placement/text_table.h"

namespace quintet {
namespace {

using nlohmann::ordered_json;
using Row = std::vector<std::string>;

constexpr size_t kLongestName = 22;

std::string blocks_on(const StackPlan& stack, const std::string& device) {
  for (const StackStage& stage : stack.stages) {
    if (stage.device == device) return block_range(stage.first_block, stage.last_block);
  }
  return "none";
}

std::string heading(const GenerationPlan& plan, const GenerationContext& context) {
  std::string text;
  if (plan.encoder.n_layers > 0) text = fmt::format("encoder: {} blocks, ", plan.encoder.n_layers);
  return text + fmt::format("decoder: {} blocks in {}\n", plan.decoder.n_layers, context.dtype);
}

std::vector<Row> rows_of(const GenerationPlan& plan) {
  const bool has_encoder = plan.encoder.n_layers > 0;
  const bool has_fixed = std::ranges::any_of(
      plan.devices, [](const DevicePlan& device) { return device.fixed_bytes > 0; });
  std::vector<Row> rows = {{"device"}};
  if (has_encoder) rows[0].emplace_back("encoder");
  for (const char* title : {"decoder", "weights", "caches", "activations"}) {
    rows[0].emplace_back(title);
  }
  if (has_fixed) rows[0].emplace_back("program");
  for (const char* title : {"memory", "busy", "fits"}) rows[0].emplace_back(title);
  for (const DevicePlan& device : plan.devices) {
    Row& row = rows.emplace_back();
    row.push_back(device.device);
    if (has_encoder) row.push_back(blocks_on(plan.encoder, device.device));
    row.push_back(blocks_on(plan.decoder, device.device));
    for (const int64_t bytes : {device.weight_bytes, device.cache_bytes, device.activation_bytes}) {
      row.push_back(human_bytes(bytes));
    }
    if (has_fixed) row.push_back(human_bytes(device.fixed_bytes));
    row.push_back(human_bytes(device.memory_bytes));
    row.push_back(fmt::format("{:.0f} %", 100 * device.utilisation));
    row.emplace_back(device.fits ? "yes" : "no");
  }
  for (const std::string& device : plan.unused) {
    rows.push_back({device, "none"});
    if (has_encoder) rows.back().emplace_back("none");
  }
  return rows;
}

// Device names as long as the page leaves room for.
void shorten_names(std::vector<Row>& rows) {
  size_t others = 0;
  for (size_t c = 1; c < rows[0].size(); ++c) {
    size_t widest = 0;
    for (const Row& row : rows) widest = std::max(widest, c < row.size() ? row[c].size() : 0);
    others += 2 + widest;
  }
  const size_t room = kPageWidth - std::min(others, kPageWidth - 8);
  for (Row& row : rows) row[0] = shortened(row[0], std::min(room, kLongestName));
}

std::string plural(int64_t n, const std::string& thing) {
  return fmt::format("{} {}{}", thousands(n), thing, n == 1 ? "" : "s");
}

std::string groups_line(const GenerationPlan& plan) {
  std::string text = plural(plan.n_groups, "group") + " of " + plural(plan.rows_per_group, "row");
  if (plan.rows_per_record > 1) text += fmt::format(", {} to a record", plan.rows_per_record);
  if (plan.self_pages + plan.cross_pages == 0) return text + "; no caches";
  text += "; caches of " + plural(plan.self_pages, "page");
  if (plan.cross_pages > 0) {
    text += fmt::format(" and {} for the encoder's output", thousands(plan.cross_pages));
  }
  return text + fmt::format(", each of {} tokens", kPageTokens);
}

std::string rates_line(const GenerationPlan& plan) {
  std::string text = fmt::format("expected {} new tokens/s, {} prompt tokens/s",
                                 readable_rate(plan.new_tokens_per_second),
                                 readable_rate(plan.prompt_tokens_per_second));
  if (plan.encoder.n_layers > 0) {
    text += fmt::format(", {} encoder tokens/s", readable_rate(plan.source_tokens_per_second));
  }
  return text;
}

ordered_json stack_json(const StackPlan& stack) {
  ordered_json map = ordered_json::object();
  for (const auto& [device, blocks] : stack.device_map()) map[device] = blocks;
  ordered_json stages = ordered_json::array();
  for (const StackStage& stage : stack.stages) {
    stages.push_back({{"device", stage.device},
                      {"blocks", {stage.first_block, stage.last_block}},
                      {"weight_bytes", stage.weight_bytes},
                      {"seconds_per_record", stage.seconds_per_record},
                      {"time_share", stage.share}});
  }
  return {{"n_layers", stack.n_layers}, {"device_map", map}, {"stages", stages}};
}

ordered_json devices_json(const GenerationPlan& plan) {
  ordered_json devices = ordered_json::array();
  for (const DevicePlan& device : plan.devices) {
    devices.push_back({{"device", device.device},
                       {"weight_bytes", device.weight_bytes},
                       {"cache_bytes", device.cache_bytes},
                       {"activation_bytes", device.activation_bytes},
                       {"fixed_bytes", device.fixed_bytes},
                       {"needed_bytes", device.needed_bytes()},
                       {"memory_bytes", device.memory_bytes},
                       {"seconds_per_record", device.seconds_per_record},
                       {"utilisation", device.utilisation},
                       {"fits", device.fits}});
  }
  return devices;
}

}  // namespace

std::string generation_plan_table(const GenerationPlan& plan, const GenerationContext& context) {
  std::vector<Row> rows = rows_of(plan);
  shorten_names(rows);
  std::string text = heading(plan, context) + aligned(rows) + wrapped(groups_line(plan)) +
                     wrapped(rates_line(plan));
  if (!plan.note.empty()) text += wrapped(plan.note);
  if (plan.fits) return text + "fits\n";
  return text + wrapped("does not fit: " + plan.problem) + wrapped(plan.advice);
}

std::string generation_plan_json(const GenerationPlan& plan, const GenerationContext& context) {
  ordered_json value = {{"dtype", context.dtype},
                        {"fits", plan.fits},
                        {"note", plan.note},
                        {"problem", plan.problem},
                        {"advice", plan.advice},
                        {"records_per_second", plan.records_per_second},
                        {"new_tokens_per_second", plan.new_tokens_per_second},
                        {"prompt_tokens_per_second", plan.prompt_tokens_per_second},
                        {"source_tokens_per_second", plan.source_tokens_per_second},
                        {"n_groups", plan.n_groups},
                        {"rows_per_group", plan.rows_per_group},
                        {"rows_per_record", plan.rows_per_record},
                        {"page_tokens", kPageTokens},
                        {"self_pages", plan.self_pages},
                        {"cross_pages", plan.cross_pages}};
  if (plan.encoder.n_layers > 0) value["encoder"] = stack_json(plan.encoder);
  value["decoder"] = stack_json(plan.decoder);
  value["devices"] = devices_json(plan);
  value["unused_devices"] = plan.unused;
  return value.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace quintet
