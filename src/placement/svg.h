// A plan as a picture: the devices with their blocks and memory, and how micro-batches pass through
// them in time.
#ifndef QUINTET_PLACEMENT_SVG_H_
#define QUINTET_PLACEMENT_SVG_H_

#include <string>

#include "placement/planner.h"

namespace quintet {

struct SvgOptions {
  std::string title;   // the checkpoint's name, for one
  int n_batches = 12;  // micro-batches in the timeline
};

std::string plan_svg(const Plan& plan, const SvgOptions& options = {},
                     const PlanContext& context = {});

}  // namespace quintet

#endif  // QUINTET_PLACEMENT_SVG_H_
