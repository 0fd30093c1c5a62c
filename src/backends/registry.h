// From a device's name to the Device. Backends stand in a table: cpu and reference are built in,
// modules are loaded when one of their devices is named.
#ifndef QUINTET_BACKENDS_REGISTRY_H_
#define QUINTET_BACKENDS_REGISTRY_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/device.h"
#include "quintet/devices.h"

namespace quintet {

struct OpenOptions {
  int threads = 0;  // per CPU device; 0: one per core of the device
};

// One kind of device. Names begin with one of `prefixes`, followed by ':', '[' or nothing.
struct Backend {
  std::vector<std::string> prefixes;  // the kind's own name first
  bool built_in = false;              // no module may have its names
  bool listed = true;                 // in list_devices(); the yardstick is not
  std::function<std::vector<DeviceInfo>()> list;
  // The devices that a name stands for, under their one spelling: of most names one, of
  // "opencl:0/2" two. Throws Error(kDevice) where there is none of that name.
  std::function<std::vector<DeviceInfo>(const std::string& name)> find;
  std::function<std::unique_ptr<Device>(const std::string& canonical, const OpenOptions&)> open;
  // Throws Error(kUsage) where two different canonical names share hardware. May be empty.
  std::function<void(const std::string& first, const std::string& second)> check_disjoint;
  // Of all devices of the kind. Where empty, those that are open are asked one by one.
  std::function<void(uint64_t seed)> manual_seed;
  std::function<void()> empty_cache;
  // Bytes that this process holds on a device. Where empty, those of the open devices are added.
  std::function<size_t(const std::string& canonical)> memory_in_use;
};

// Adds a backend; of one that is there already under the same name it takes the place. Not to be
// called while devices are opened.
void add_backend(Backend backend);

// A device, counted as open until it is dropped.
struct DeviceCloser {
  void operator()(Device* device) const;
};
using OpenedDevice = std::unique_ptr<Device, DeviceCloser>;

// Names: "cpu:N" (the N-th NUMA node that has cores for this process), "cpu" (= cpu:0),
// "cpu[0-3,6]" (those cores), "reference:0" (the slow yardstick), and those of modules, which are
// looked for when a name is of none of these kinds. Throws Error(kDevice) that lists what there is,
// and Error(kUsage) where a name stands for several.
OpenedDevice open_device(const std::string& name, OpenOptions options = {});

// The canonical spelling of a device's name: "cpu" -> "cpu:0", "cpu[1,0]" -> "cpu[0-1]". Throws as
// open_device does, without opening anything.
std::string canonical_device_name(const std::string& name);

// The canonical spellings of all that a name stands for: "opencl:0/2" -> "opencl:0/2[0]",
// "opencl:0/2[1]".
std::vector<std::string> canonical_device_names(const std::string& name);

// The devices that belong with one: the parts of a divided device ("opencl:0/2[1]"), else all of
// its kind, else, where those are not counted, itself.
std::vector<std::string> devices_like(const std::string& name);

// Throws Error(kUsage) on an empty list, a device named twice, or devices that share hardware.
// `names` are canonical.
void check_device_list(const std::vector<std::string>& names);

// Splits "cpu[0,2],cpu[1]" at the commas outside brackets into canonical names, checked.
std::vector<std::string> parse_device_list(const std::string& text);

}  // namespace quintet

#endif  // QUINTET_BACKENDS_REGISTRY_H_
