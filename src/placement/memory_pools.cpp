#include "placement/memory_pools.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "core/human.h"

namespace quintet {

std::vector<PoolUse> full_pools(const std::vector<DeviceUse>& uses,
                                const std::vector<DeviceSpec>& devices) {
  std::map<std::string, PoolUse> pools;
  for (const DeviceUse& use : uses) {
    const DeviceSpec& device = *std::find_if(
        devices.begin(), devices.end(), [&](const auto& spec) { return spec.name == use.device; });
    if (device.memory_pool.empty()) continue;
    PoolUse& pool = pools[device.memory_pool];
    pool.name = device.memory_pool;
    pool.used += use.bytes;
    pool.fixed = std::max(pool.fixed, use.fixed);
    pool.available = std::max(pool.available, device.pool_bytes);
    pool.devices.push_back(use.device);
  }
  std::vector<PoolUse> full;
  for (auto& [name, pool] : pools) {
    if (pool.needed() > pool.available) full.push_back(std::move(pool));
  }
  return full;
}

std::string describe_pool(const PoolUse& pool, const std::string& dtype) {
  std::string members;
  for (const std::string& device : pool.devices) {
    members += (members.empty() ? "" : ", ") + device;
  }
  return fmt::format("{} together need {} of {} memory in {}, {} is available", members,
                     human_bytes(pool.needed()), pool.name, dtype, human_bytes(pool.available));
}

std::vector<int64_t> equal_pool_shares(const std::vector<DeviceSpec>& devices) {
  std::map<std::string, int64_t> members;
  for (const DeviceSpec& device : devices) ++members[device.memory_pool];
  std::vector<int64_t> shares;
  shares.reserve(devices.size());
  for (const DeviceSpec& device : devices) {
    shares.push_back(device.memory_pool.empty() ? std::numeric_limits<int64_t>::max()
                                                : device.pool_bytes / members[device.memory_pool]);
  }
  return shares;
}

}  // namespace quintet
