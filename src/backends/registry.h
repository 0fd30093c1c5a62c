// From a device's name to the Device: the built-in backends cpu and reference, later modules found
// at run time.
#ifndef QUINTET_BACKENDS_REGISTRY_H_
#define QUINTET_BACKENDS_REGISTRY_H_

#include <memory>
#include <string>
#include <vector>

#include "backends/device.h"

namespace quintet {

// A device that exists on this machine, for `quintet devices` and for messages.
struct DeviceInfo {
  std::string name;         // "cpu:0"
  std::string description;  // "NUMA node 0, cores 0-15, AVX-512, 64.0 GiB"
  size_t total_bytes = 0;
  size_t free_bytes = 0;
  int n_cores = 0;  // cores or compute units
};

struct OpenOptions {
  int threads = 0;  // per CPU device; 0: one per core of the device
};

std::vector<DeviceInfo> list_devices();

// Names: "cpu:N" (NUMA node N), "cpu" (= cpu:0), "cpu[0-3,6]" (those cores), "reference:N" (the
// slow yardstick). Cores outside this process's affinity mask do not exist. Throws Error(kDevice)
// that lists what there is.
std::unique_ptr<Device> open_device(const std::string& name, OpenOptions options = {});

// The canonical spelling of a device's name: "cpu" -> "cpu:0", "cpu[1,0]" -> "cpu[0-1]". Throws as
// open_device does, without opening anything.
std::string canonical_device_name(const std::string& name);

// Splits "cpu[0,2],cpu[1]" at the commas outside brackets into canonical names. Throws
// Error(kUsage) on an empty list, a device named twice, or CPU devices that share a core.
std::vector<std::string> parse_device_list(const std::string& text);

}  // namespace quintet

#endif  // QUINTET_BACKENDS_REGISTRY_H_
