#include "conformance/device_set.h"

#include <algorithm>

#include "core/error.h"

namespace quintet::conformance {

std::vector<std::string> DeviceSet::names() const {
  std::vector<std::string> names;
  for (const DeviceInfo& device : devices) names.push_back(device.name);
  return names;
}

DeviceSet find_device_set(const DeviceSpec& spec) {
  if (!spec.module.empty()) load_backend(spec.module.string());
  DeviceSet set;
  set.hooks = spec.hooks;
  set.tolerance = spec.tolerance;
  for (const std::string& name : spec.devices) {
    DeviceInfo found = find_device(name);
    for (const DeviceInfo& other : set.devices) {
      if (other.name == found.name) {
        fail(ErrorKind::kUsage, "{}: {} is {}, which stands there already; name each device once",
             spec.file.string(), name, found.name);
      }
    }
    set.devices.push_back(std::move(found));
  }
  if (spec.devices.empty()) set.devices = list_devices_of(spec.kind);
  if (set.devices.empty()) {
    fail(ErrorKind::kDevice, "{}: this machine has no device of kind '{}'", spec.file.string(),
         spec.kind);
  }
  for (const DeviceInfo& device : set.devices) {
    const std::string kind = kind_of(device.name);
    if (std::ranges::find(set.kinds, kind) == set.kinds.end()) set.kinds.push_back(kind);
  }
  return set;
}

}  // namespace quintet::conformance
