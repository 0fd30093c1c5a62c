// From a device's name to the Device. Backends stand in a table: cpu and reference are built in, a
// loader of modules adds more.
#ifndef QUINTET_BACKENDS_REGISTRY_H_
#define QUINTET_BACKENDS_REGISTRY_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/device.h"

namespace quintet {

// A device that exists on this machine, for `quintet devices` and for messages.
struct DeviceInfo {
  std::string name;         // "cpu:0"
  std::string description;  // "NUMA node 0, cores 0-15, AMD EPYC 7763, 64.0 GiB"
  size_t total_bytes = 0;
  size_t free_bytes = 0;
  int n_cores = 0;  // cores or compute units
  // Devices of one pool share their memory: "host" for all that live in the main memory.
  std::string memory_pool;
  // What its speed depends on, for the calibration cache: model, number and kind of its cores.
  std::string hardware;
};

struct OpenOptions {
  int threads = 0;  // per CPU device; 0: one per core of the device
};

// One kind of device. Names begin with `prefix`, followed by ':', '[' or nothing.
struct Backend {
  std::string prefix;
  bool listed = true;  // in list_devices(); the yardstick is not
  std::function<std::vector<DeviceInfo>()> list;
  // Canonical name and facts of one device; throws Error(kDevice) where there is none of that name.
  std::function<DeviceInfo(const std::string& name)> find;
  std::function<std::unique_ptr<Device>(const std::string& canonical, const OpenOptions&)> open;
  // Throws Error(kUsage) where two different canonical names share hardware. May be empty.
  std::function<void(const std::string& first, const std::string& second)> check_disjoint;
};

// Adds a backend; one of the same prefix is replaced. Not to be called while devices are opened.
void add_backend(Backend backend);

std::vector<DeviceInfo> list_devices();

// Names: "cpu:N" (the N-th NUMA node that has cores for this process), "cpu" (= cpu:0),
// "cpu[0-3,6]" (those cores), "reference:0" (the slow yardstick). Throws Error(kDevice) that lists
// what there is.
std::unique_ptr<Device> open_device(const std::string& name, OpenOptions options = {});

// The facts of one device, without opening it: list_devices() does not list every "cpu[...]".
DeviceInfo find_device(const std::string& name);

// The canonical spelling of a device's name: "cpu" -> "cpu:0", "cpu[1,0]" -> "cpu[0-1]". Throws as
// open_device does, without opening anything.
std::string canonical_device_name(const std::string& name);

// Throws Error(kUsage) on an empty list, a device named twice, or CPU devices that share a core.
// `names` are canonical.
void check_device_list(const std::vector<std::string>& names);

// Splits "cpu[0,2],cpu[1]" at the commas outside brackets into canonical names, checked.
std::vector<std::string> parse_device_list(const std::string& text);

}  // namespace quintet

#endif  // QUINTET_BACKENDS_REGISTRY_H_
