// Lays an encoder and a decoder out over devices together, for generating or scoring: the devices
// form a ring, the slowest sets the pace, and the decoder's caches take their part of the memory.
#ifndef QUINTET_PLACEMENT_GENERATION_PLAN_H_
#define QUINTET_PLACEMENT_GENERATION_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/block_cost.h"
#include "placement/planner.h"
#include "quintet/device_map.h"

namespace quintet {

struct GenerationStacks {
  std::optional<StackCost> encoder;
  StackCost decoder;
};

// One record that will come. The pages are what it may come to need at most, as the generator sets
// them aside; 0 self pages where nothing is kept, as in scoring.
struct ExpectedGeneration {
  int32_t source_tokens = 0;  // that the encoder reads; 0: no encoder
  int32_t prompt_tokens = 1;  // of the decoder; scoring: all that it reads
  int32_t new_tokens = 1;     // of each row; scoring: 1
  int64_t self_pages = 0;
  int64_t cross_pages = 0;
};

struct GenerationProfile {
  std::vector<ExpectedGeneration> records;  // all that will come or a sample; at least one
  int64_t n_records = 0;                    // how many will come in all; 0: many
  int64_t rows_per_record = 1;              // beams or samples
  int64_t rows_per_group = 0;               // wanted; 0: chosen, up to 32
  int64_t n_groups = 0;                   // wanted; 0 or less than there are decoder stages: these
  int64_t prompt_tokens_per_step = 512;   // prompts join a step up to so many tokens
  int64_t source_tokens_per_step = 4096;  //   and the encoder's output of so many
  int64_t encode_tokens_per_batch = 512;  // of the encoder's micro-batches
  bool scores_prompts = false;            // the head sees every token of a prompt, not its last
};

struct GenerationContext {
  std::string dtype = "float32";  // of the costs
  // The same stacks in other dtypes, most precise first, to see whether they would fit.
  std::vector<std::pair<std::string, GenerationStacks>> other_dtypes;
};

// The part of a stack on one device.
struct StackStage {
  std::string device;
  int64_t first_block = 0;
  int64_t last_block = 0;  // one past the last
  int64_t weight_bytes = 0;
  double seconds_per_record = 0;  // its device's, on average
  double share = 0;               // of the time that all stages of both stacks together take
};

struct StackPlan {
  int64_t n_layers = 0;  // 0: the model has no such stack
  std::vector<StackStage> stages;

  DeviceMap device_map() const;
};

struct DevicePlan {
  std::string device;
  int64_t weight_bytes = 0;  // of both stacks
  int64_t cache_bytes = 0;
  int64_t activation_bytes = 0;  // peak
  int64_t fixed_bytes = 0;
  int64_t memory_bytes = 0;  // what the device has
  double seconds_per_record = 0;
  double utilisation = 0;  // share of the run in which it computes
  bool fits = true;

  int64_t needed_bytes() const {
    return weight_bytes + cache_bytes + activation_bytes + fixed_bytes;
  }
};

struct GenerationPlan {
  StackPlan encoder;
  StackPlan decoder;
  std::vector<DevicePlan> devices;  // that hold blocks, in the order given
  std::vector<std::string> unused;

  int64_t n_groups = 1;        // at least the decoder's stages
  int64_t rows_per_group = 1;  // a multiple of rows_per_record
  int64_t rows_per_record = 1;
  int64_t self_pages = 0;  // of the caches: the most that the records under way can need
  int64_t cross_pages = 0;

  double records_per_second = 0;
  double new_tokens_per_second = 0;     // of all rows
  double prompt_tokens_per_second = 0;  // of the decoder's prompts
  double source_tokens_per_second = 0;

  bool fits = true;
  std::string note;     // where fewer rows fit than were asked for
  std::string problem;  // where it does not fit: which device, needed and available
  std::string advice;   //   and what would fit, as computed
};

// The best split of both stacks ("auto"): exact over all contiguous splits in the order of the
// devices, each of which may hold blocks of one stack, of both or of none. Throws Error(kUsage)
// without devices, blocks or expected records; what does not fit is said in the plan.
GenerationPlan plan_generation(const GenerationStacks& stacks,
                               const std::vector<DeviceSpec>& devices,
                               const GenerationProfile& profile,
                               const GenerationContext& context = {});

// The plan of given maps, whose devices are among `devices` (stack_maps() for the even split).
GenerationPlan evaluate_generation_maps(const GenerationStacks& stacks, const StackMaps& maps,
                                        const std::vector<DeviceSpec>& devices,
                                        const GenerationProfile& profile,
                                        const GenerationContext& context = {});

}  // namespace quintet

#endif  // QUINTET_PLACEMENT_GENERATION_PLAN_H_
