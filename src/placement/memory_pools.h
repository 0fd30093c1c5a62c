// Devices that live in one memory, such as two sets of cores: what they take together.
#ifndef QUINTET_PLACEMENT_MEMORY_POOLS_H_
#define QUINTET_PLACEMENT_MEMORY_POOLS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "placement/planner.h"

namespace quintet {

// What a plan takes of one device.
struct DeviceUse {
  std::string device;
  int64_t bytes = 0;  // of the model
  int64_t fixed = 0;  // the process's own part, once per pool however many devices it drives
};

struct PoolUse {
  std::string name;
  int64_t used = 0;
  int64_t fixed = 0;
  int64_t available = 0;
  std::vector<std::string> devices;

  int64_t needed() const { return used + fixed; }
};

// Pools that ask for more than they have, by name.
std::vector<PoolUse> full_pools(const std::vector<DeviceUse>& uses,
                                const std::vector<DeviceSpec>& devices);

// "a, b together need 3.00 GiB of host memory in float32, 2.00 GiB is available".
std::string describe_pool(const PoolUse& pool, const std::string& dtype);

// [devices] limits under which no pool can overflow: an equal part of it for each of its devices.
std::vector<int64_t> equal_pool_shares(const std::vector<DeviceSpec>& devices);

}  // namespace quintet

#endif  // QUINTET_PLACEMENT_MEMORY_POOLS_H_
