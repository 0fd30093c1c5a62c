// Which blocks sit on which device, in the terms of the original parallelize().
#ifndef QUINTET_DEVICE_MAP_H_
#define QUINTET_DEVICE_MAP_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace quintet {

// Devices in the order in which the blocks pass through them, each with its blocks in rising order:
// {{"cpu:0", {0, 1, 2}}, {"opencl:0", {3, 4, 5}}}.
using DeviceMap = std::vector<std::pair<std::string, std::vector<int64_t>>>;

// Blocks 0 .. n_layers - 1 in runs of ceil(n_layers / devices.size()), in order; devices that would
// get none are left out. Throws Error(kUsage) when there are no devices or no layers.
DeviceMap get_device_map(int64_t n_layers, const std::vector<std::string>& devices);

// Throws Error(kUsage) that lists every duplicate, missing and extra block, all three at once where
// all three occur; and where the map is empty, a device stands twice or has no blocks, or a
// device's blocks are not one rising run without gaps. `stack` ("encoder", "decoder") goes into the
// message.
void assert_device_map(const DeviceMap& device_map, int64_t n_layers,
                       const std::string& stack = "");

// The same map with its devices in the order of their first blocks.
DeviceMap order_device_map(DeviceMap device_map);

// What a user says about the layout.
enum class MapRule {
  kAuto,  // by measured speed and memory
  kEven,  // get_device_map()
  kGiven  // as written down
};

struct DeviceMapOption {
  MapRule rule = MapRule::kAuto;
  // Where given: a map for each stack. A map that names no stack is meant for every stack and
  // stands in both; of {"encoder": ...} alone, the other is empty.
  DeviceMap encoder;
  DeviceMap decoder;
  bool per_stack = false;  // the stacks were named
};

// "auto", "even", a file's name, or a map itself: {"cpu[0]": [0, 1], "cpu[1]": [2, 3]} or
// {"encoder": {...}, "decoder": {...}}. The maps come in the order of their first blocks; which
// blocks they list is checked by assert_device_map(), device names by nobody here. Throws
// Error(kUsage) or, for a file, Error(kFile).
DeviceMapOption parse_device_map(const std::string& text);

// Which blocks of each stack sit where; empty: the model has no such stack.
struct StackMaps {
  DeviceMap encoder;
  DeviceMap decoder;
};

// The maps of a model with so many blocks in its stacks, 0 where it has no such stack, from an
// option that is `even` (over `devices`) or given. Each has passed assert_device_map(). Throws
// Error(kUsage) that names the stack: also where the option has a map for a stack that the model
// lacks, or none for one that it has.
StackMaps stack_maps(const DeviceMapOption& option, int64_t n_encoder_layers,
                     int64_t n_decoder_layers, const std::vector<std::string>& devices);

// {"cpu[0]":[0,1],"cpu[1]":[2,3]}: what parse_device_map() reads.
std::string device_map_text(const DeviceMap& device_map);

}  // namespace quintet

#endif  // QUINTET_DEVICE_MAP_H_
