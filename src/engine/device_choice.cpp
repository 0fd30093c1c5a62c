#include "engine/device_choice.h"

#include <algorithm>
#include <utility>

#include "backends/measure.h"
#include "backends/registry.h"
#include "core/error.h"
#include "engine/version.h"
#include "placement/calibration.h"
#include "placement/memory_limits.h"

namespace quintet {
namespace {

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

std::vector<std::string> chosen_devices(const Options& options, const DeviceMapOption& map) {
  if (!options.devices.empty()) return parse_device_list(options.devices);
  std::vector<std::string> names;
  for (const DeviceMap* stack : {&map.encoder, &map.decoder}) {
    for (const auto& [given, blocks] : *stack) {
      std::string name = canonical_device_name(given);
      if (!contains(names, name)) names.push_back(std::move(name));
    }
  }
  if (names.empty()) names.push_back(canonical_device_name("cpu:0"));
  check_device_list(names);
  return names;
}

DeviceSpec spec_of(const std::string& name, const Options& options, const MemoryLimits& limits,
                   DType dtype) {
  const DeviceInfo info = find_device(name);
  const OpenOptions open{.threads = options.threads};
  const CalibrationKey key{
      .hardware = info.hardware, .threads = options.threads, .version = kVersion};
  const DeviceSpeed speed =
      calibrate(key, [&] { return measure_device(*open_device(name, open)); });
  auto bytes = static_cast<int64_t>(info.free_bytes);
  if (limits.every) bytes = std::min(bytes, *limits.every);
  for (const auto& [limited, limit] : limits.per_device) {
    if (contains(canonical_device_names(limited), name)) {
      bytes = std::min(static_cast<int64_t>(info.free_bytes), limit);
    }
  }
  DeviceSpec spec = device_spec(name, speed, dtype, bytes);
  spec.asynchronous = info.asynchronous;
  spec.memory_pool = info.memory_pool;
  spec.pool_bytes = static_cast<int64_t>(info.free_bytes);
  return spec;
}

// Every device that --max-memory names must be one of those in use.
void check_limits(const MemoryLimits& limits, const std::vector<std::string>& devices) {
  for (const auto& [name, limit] : limits.per_device) {
    for (const std::string& limited : canonical_device_names(name)) {
      if (contains(devices, limited)) continue;
      fail(ErrorKind::kUsage, "--max-memory {}: {} is not among the devices in use", name, limited);
    }
  }
}

}  // namespace

DeviceMap canonical_map(const DeviceMap& given, const std::vector<std::string>& devices) {
  DeviceMap map;
  for (const auto& [name, blocks] : given) {
    std::string canonical = canonical_device_name(name);
    if (!contains(devices, canonical)) {
      std::string listed;
      for (const auto& device : devices) listed += (listed.empty() ? "" : ", ") + device;
      fail(ErrorKind::kUsage, "--device-map names {}, --devices has {}", canonical, listed);
    }
    map.emplace_back(std::move(canonical), blocks);
  }
  return map;
}

DeviceChoice choose_devices(const Options& options, const DeviceMapOption& map, DType dtype) {
  DeviceChoice choice;
  choice.names = chosen_devices(options, map);
  const MemoryLimits limits =
      options.max_memory.empty() ? MemoryLimits{} : parse_memory_limits(options.max_memory);
  check_limits(limits, choice.names);
  for (const auto& name : choice.names) {
    choice.specs.push_back(spec_of(name, options, limits, dtype));
    choice.n_threads += options.threads > 0 ? options.threads : find_device(name).n_cores;
  }
  return choice;
}

}  // namespace quintet
