// Lays a stack of blocks out over devices of known speed and memory: exact dynamic programming over
// contiguous splits that minimises the slowest stage under each device's memory.
#ifndef QUINTET_PLACEMENT_PLANNER_H_
#define QUINTET_PLACEMENT_PLANNER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/block_cost.h"
#include "core/device_speed.h"
#include "quintet/device_map.h"

namespace quintet {

// A device as the planner sees it.
struct DeviceSpec {
  std::string name;
  double flops_per_second = 0;            // of matrix products in the dtype planned for
  double attention_flops_per_second = 0;  // of attention
  double bytes_per_second = 0;            // of streaming weights; 0: no bound
  bool asynchronous = false;              // has one micro-batch more under way
  int64_t memory_bytes = 0;               // what the plan may use
  int64_t fixed_bytes = 0;                // of that, taken by the process itself
  std::string memory_pool;                // devices of one pool also share pool_bytes; "": none
  int64_t pool_bytes = 0;                 //   as this device sees it; the largest counts
};

DeviceSpec device_spec(std::string name, const DeviceSpeed& speed, DType dtype,
                       int64_t memory_bytes);

// Where `devices` has the one of this name. Throws Error(kDevice) where it has none.
size_t device_index(const std::vector<DeviceSpec>& devices, const std::string& name);

// The lengths that will come: what the plan's times are for.
struct LengthProfile {
  std::vector<int32_t> lengths;  // tokens of each record (or a sample of them)
  int64_t n_records = 0;         // how many will come in all; 0: many, the ends do not count
  int64_t tokens_per_batch = 512;
  int64_t batches_in_flight = 2;  // per stage: one computed, the others queued as hidden states
};

// What messages and advice are made of.
struct PlanContext {
  std::string stack = "encoder";
  std::string dtype = "float32";  // of the costs
  // The same stack in other dtypes, most precise first, to see whether it would fit.
  std::vector<std::pair<std::string, StackCost>> other_dtypes;
};

struct StagePlan {
  std::string device;
  int64_t first_block = 0;
  int64_t last_block = 0;  // one past the last
  int64_t weight_bytes = 0;
  int64_t activation_bytes = 0;  // peak
  int64_t fixed_bytes = 0;
  int64_t memory_bytes = 0;  // what the device has
  double seconds_per_token = 0;
  double share = 0;        // of the time that all stages together take
  double utilisation = 0;  // share of the run in which it computes
  bool fits = true;

  int64_t needed_bytes() const { return weight_bytes + activation_bytes + fixed_bytes; }
};

struct Plan {
  std::vector<StagePlan> stages;
  std::vector<std::string> unused;  // devices left without blocks
  int64_t n_layers = 0;
  double tokens_per_second = 0;
  double fill = 1;  // time that a line never idle would take, over the time with start and end
  double tokens_per_batch = 0;  // as expected, on average
  int64_t n_batches = 0;        // 0: many
  bool fits = true;
  std::string problem;  // where it does not fit: which device, needed and available
  std::string advice;   //   and what would fit, as computed
};

// The best split ("auto"). The devices are used in the order given, each at most once; those that
// cannot hold a block, or would slow the line down or hardly make it faster, stay unused. Throws
// Error(kUsage) without devices or blocks; what does not fit is said in the plan.
Plan plan_stages(const StackCost& cost, const std::vector<DeviceSpec>& devices,
                 const LengthProfile& profile, const PlanContext& context = {});

// The plan of a given map, whose devices are among `devices`.
Plan evaluate_map(const StackCost& cost, const DeviceMap& device_map,
                  const std::vector<DeviceSpec>& devices, const LengthProfile& profile,
                  const PlanContext& context = {});

DeviceMap device_map_of(const Plan& plan);

}  // namespace quintet

#endif  // QUINTET_PLACEMENT_PLANNER_H_
