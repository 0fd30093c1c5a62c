#include "engine/stage_stats.h"

namespace quintet {

nlohmann::ordered_json stages_json(const std::vector<StageStats>& stages, double seconds) {
  auto list = nlohmann::ordered_json::array();
  for (const StageStats& stage : stages) {
    auto blocks = nlohmann::ordered_json::array();
    for (int64_t b = stage.range.first_block; b < stage.range.last_block; ++b) blocks.push_back(b);
    nlohmann::ordered_json entry;
    entry["device"] = stage.device;
    if (!stage.stack.empty()) entry["stack"] = stage.stack;
    entry["blocks"] = std::move(blocks);
    entry["busy"] = seconds > 0 ? stage.busy_seconds / seconds : 0.0;
    entry["busy_seconds"] = stage.busy_seconds;
    entry["link_seconds"] = stage.link_seconds;
    entry["waiting_seconds"] = stage.waiting_seconds;
    entry["micro_batches"] = stage.batches;
    list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace quintet
