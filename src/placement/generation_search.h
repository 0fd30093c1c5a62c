// Looks for the fastest layout of generating that fits: how both stacks are split, how many groups
// of rows are under way, and how large they are.
#ifndef QUINTET_PLACEMENT_GENERATION_SEARCH_H_
#define QUINTET_PLACEMENT_GENERATION_SEARCH_H_

#include <vector>

#include "placement/generation_model.h"
#include "placement/generation_plan.h"
#include "placement/joint_split.h"

namespace quintet {

// What a search is over.
struct GenerationCase {
  const GenerationStacks& stacks;
  const std::vector<DeviceSpec>& devices;
  const GenerationProfile& profile;
};

// The best that fits; where nothing does, the smallest groups on the split that comes closest, with
// fits = false. Without note, problem and advice.
GenerationPlan search_generation(const GenerationCase& given);

// Of a given split ([n_devices] runs), with the largest groups that fit.
GenerationPlan plan_of_split(const GenerationCase& given, const std::vector<JointRun>& runs);

// Whether anything fits at all, with groups of one record.
bool can_fit(const GenerationCase& given);

}  // namespace quintet

#endif  // QUINTET_PLACEMENT_GENERATION_SEARCH_H_
