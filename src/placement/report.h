// A plan for people (a text table) and for programs (JSON).
#ifndef QUINTET_PLACEMENT_REPORT_H_
#define QUINTET_PLACEMENT_REPORT_H_

#include <string>

#include "placement/planner.h"

namespace quintet {

// At most 100 columns wide, ends with a newline.
std::string plan_table(const Plan& plan, const PlanContext& context = {});

// One object: fits, tokens_per_second, fill, n_batches, device_map, stages [...], problem, advice.
std::string plan_json(const Plan& plan, const PlanContext& context = {});

}  // namespace quintet

#endif  // QUINTET_PLACEMENT_REPORT_H_
