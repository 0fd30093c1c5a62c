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
// get none are left out. Throws Error(kUsage) when there are no devices.
DeviceMap get_device_map(int64_t n_layers, const std::vector<std::string>& devices);

// Throws Error(kUsage) that lists every duplicate, missing and extra block, all three at once where
// all three occur; and where the map is empty, a device has no blocks, or a device's blocks are not
// one contiguous run.
void assert_device_map(const DeviceMap& device_map, int64_t n_layers);

}  // namespace quintet

#endif  // QUINTET_DEVICE_MAP_H_
