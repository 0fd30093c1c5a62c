// Lays a stack of blocks out over devices of known speed and memory: exact dynamic programming over
// contiguous splits that minimises the slowest stage under each device's memory.
#ifndef QUINTET_PLACEMENT_PLANNER_H_
#define QUINTET_PLACEMENT_PLANNER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/block_cost.h"
#include "quintet/device_map.h"

namespace quintet {

// A device as the planner sees it.
struct DeviceSpec {
  std::string name;
  double flops_per_second = 0;            // of matrix products, measured
  double attention_flops_per_second = 0;  // of attention
  double bytes_per_second = 0;            // of streaming weights, measured
  int64_t memory_bytes = 0;               // what the plan may use
};

// The lengths that will come: what the plan's times are for.
struct LengthProfile {
  std::vector<int32_t> lengths;  // tokens of each record (or a sample of them)
  int64_t tokens_per_batch = 0;
  int64_t batches_in_flight = 2;  // per stage: one computed, one queued
};

struct StagePlan {
  std::string device;
  int64_t first_block = 0;
  int64_t last_block = 0;  // one past the last
  int64_t weight_bytes = 0;
  int64_t activation_bytes = 0;  // peak
  int64_t memory_bytes = 0;      // what the device has
  double seconds_per_token = 0;
  double utilisation = 0;  // share of the time in which it computes, of a long run
  bool fits = true;
};

struct Plan {
  std::vector<StagePlan> stages;
  double tokens_per_second = 0;
  bool fits = true;
  std::string advice;  // where it does not fit: what would
};

Plan plan_stages(const StackCost& cost, const std::vector<DeviceSpec>& devices,
                 const LengthProfile& profile);  // the best split ("auto")
Plan evaluate_map(const StackCost& cost, const DeviceMap& device_map,
                  const std::vector<DeviceSpec>& devices, const LengthProfile& profile);
DeviceMap device_map_of(const Plan& plan);

}  // namespace quintet

#endif  // QUINTET_PLACEMENT_PLANNER_H_
