// The plan of generating for people (a text table) and for programs (JSON).
#ifndef QUINTET_PLACEMENT_GENERATION_REPORT_H_
#define QUINTET_PLACEMENT_GENERATION_REPORT_H_

#include <string>

#include "placement/generation_plan.h"

namespace quintet {

// At most 100 columns wide, ends with a newline.
std::string generation_plan_table(const GenerationPlan& plan,
                                  const GenerationContext& context = {});

// One object: fits, rates, groups, pages, device_map of each stack, stages, devices, problem.
std::string generation_plan_json(const GenerationPlan& plan, const GenerationContext& context = {});

}  // namespace quintet

#endif  // QUINTET_PLACEMENT_GENERATION_REPORT_H_
