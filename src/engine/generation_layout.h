// Where a model that generates will live: from options, config and file headers to checked device
// maps for both stacks, the caches' sizes and the plan. Nothing is loaded here.
#ifndef QUINTET_ENGINE_GENERATION_LAYOUT_H_
#define QUINTET_ENGINE_GENERATION_LAYOUT_H_

#include <cstdint>
#include <vector>

#include "engine/generation_model.h"
#include "engine/options.h"
#include "generation/generation_config.h"
#include "generation/generator.h"
#include "placement/generation_plan.h"

namespace quintet {

struct GenerationLayout {
  DType dtype = DType::kFloat32;
  GenerationProfile profile;
  GenerationContext context;
  GenerationPlan plan;
  StackMaps maps;
  int64_t max_positions = 0;

  CachePages pages() const { return {.self = plan.self_pages, .cross = plan.cross_pages}; }
  GeneratorOptions generator() const;
  int64_t planned_peak_bytes() const;
};

// What is known of the records to come.
struct ExpectedPrompts {
  std::vector<int32_t> source_lengths;  // of the encoder's ids; of a decoder alone: empty
  std::vector<int32_t> prompt_lengths;  // of the decoder's
  int64_t n_records = 0;                // 0: unknown
};

// scores: no token is generated, all logits of the prompts are wanted. Throws Error(kUsage /
// kDevice) for devices and maps that cannot be. A plan that does not fit is
// no error here: the caller decides.
GenerationLayout make_generation_layout(const GenerationFolder& folder, const Options& options,
                                        const GenerationConfig& config,
                                        const ExpectedPrompts& expected, bool scores);

}  // namespace quintet

#endif  // QUINTET_ENGINE_GENERATION_LAYOUT_H_
