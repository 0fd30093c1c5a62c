// Which devices a run uses, how fast they are and what of their memory it may take.
#ifndef QUINTET_ENGINE_DEVICE_CHOICE_H_
#define QUINTET_ENGINE_DEVICE_CHOICE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "engine/options.h"
#include "placement/planner.h"
#include "quintet/device_map.h"

namespace quintet {

struct DeviceChoice {
  std::vector<std::string> names;  // canonical, in the order the blocks pass through them
  std::vector<DeviceSpec> specs;   // of each
  int64_t n_threads = 0;           // of all together
};

// --devices, else those of the map, else cpu:0. Speeds are measured once per machine and cached.
// Throws Error(kUsage / kDevice).
DeviceChoice choose_devices(const Options& options, const DeviceMapOption& map, DType dtype);

// A given map in canonical names; throws Error(kUsage) where one of its devices is not among
// `devices`.
DeviceMap canonical_map(const DeviceMap& given, const std::vector<std::string>& devices);

}  // namespace quintet

#endif  // QUINTET_ENGINE_DEVICE_CHOICE_H_
