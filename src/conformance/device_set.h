// The devices under test: what a spec names, found on this machine.
#ifndef QUINTET_CONFORMANCE_DEVICE_SET_H_
#define QUINTET_CONFORMANCE_DEVICE_SET_H_

#include <string>
#include <vector>

#include "conformance/spec.h"
#include "quintet/devices.h"

namespace quintet::conformance {

struct DeviceSet {
  std::vector<DeviceInfo> devices;  // at least one, under the spelling that the library uses
  std::vector<std::string> kinds;   // of the devices, each once
  Hooks hooks;
  double tolerance = 0;

  std::vector<std::string> names() const;
  bool one_kind() const { return kinds.size() == 1; }
};

// Loads the module, where there is one, and finds the devices. Throws Error(kDevice / kUsage).
DeviceSet find_device_set(const DeviceSpec& spec);

}  // namespace quintet::conformance

#endif  // QUINTET_CONFORMANCE_DEVICE_SET_H_
