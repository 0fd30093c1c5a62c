// The devices of this machine: built-in kinds and those of backend modules.
#ifndef QUINTET_DEVICES_H_
#define QUINTET_DEVICES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "quintet/error.h"

namespace quintet {

// A device that exists on this machine.
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
  // Takes the next micro-batch while it computes one, and has memory for both.
  bool asynchronous = false;
};

// Loads a backend module from a file; its devices can then be named. Returns the kind ("mydev").
// Throws Error(kDevice) that names the file and says what is wrong with it.
std::string load_backend(const std::string& file);

// Every device of the built-in kinds and of the modules that are found. Modules that cannot be
// loaded, or whose drivers fail, are passed over; `notes`, where given, gets a line for each.
std::vector<DeviceInfo> list_devices(std::vector<std::string>* notes = nullptr);
// Those of one kind ("cpu", "opencl", "mydev"); throws Error(kDevice) where there is no such kind.
std::vector<DeviceInfo> list_devices_of(const std::string& kind);
// The facts of one device, without opening it. Throws Error(kDevice) that lists what there is.
DeviceInfo find_device(const std::string& name);

// Bytes that this process holds on a device, in tensors and weights of all models; 0 where nothing
// is open there.
size_t device_memory_in_use(const std::string& name);
// Of all devices of a kind. Both return false where the kind has no such thing.
bool manual_seed(const std::string& kind, uint64_t seed);
bool empty_cache(const std::string& kind);

}  // namespace quintet

#endif  // QUINTET_DEVICES_H_
