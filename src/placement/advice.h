// What would make a plan fit: each proposal is tried before it is made.
#ifndef QUINTET_PLACEMENT_ADVICE_H_
#define QUINTET_PLACEMENT_ADVICE_H_

#include <functional>
#include <string>
#include <vector>

#include "placement/planner.h"

namespace quintet {

// "what would fit: A, B, or C", or that nothing was found.
std::string what_would_fit(const std::vector<std::string>& ways);

// Memory that one more device like the last one would need; 0: even a huge one does not help.
using DevicesFit = std::function<bool(const std::vector<DeviceSpec>&)>;
int64_t extra_device_bytes(const std::vector<DeviceSpec>& devices, const DevicesFit& fit);

// A setting to be tried.
struct Trial {
  StackCost cost;
  std::vector<DeviceSpec> devices;
  LengthProfile profile;
};

using FitsFunction = std::function<bool(const Trial&)>;

// `now` does not fit. `as_asked` tells whether a trial fits with the map that the user gave (or the
// planner's own), `freely` whether it fits under any map.
std::string advise(const Trial& now, const PlanContext& context, bool map_given,
                   const FitsFunction& as_asked, const FitsFunction& freely);

}  // namespace quintet

#endif  // QUINTET_PLACEMENT_ADVICE_H_
