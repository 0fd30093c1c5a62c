#include "backends/registry.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <unordered_set>

#include "backends/cpu/cpu_device.h"
#include "backends/host_memory.h"
#include "backends/reference/reference_device.h"
#include "backends/topology.h"
#include "core/error.h"
#include "core/human.h"
#include "core/split_list.h"

namespace quintet {
namespace {

// ---- cpu

DeviceInfo describe_cpu(const CpuSet& set) {
  const Topology& topology = machine_topology();
  const NumaNode& node = topology.nodes[static_cast<size_t>(set.node)];
  const HostMemory memory = host_memory();
  DeviceInfo info;
  info.name = set.name;
  info.total_bytes = std::min(node.total_bytes, memory.total);
  info.free_bytes = std::min(info.total_bytes, memory.free);
  info.n_cores = static_cast<int>(set.threads.size());
  info.memory_pool = "host";
  info.description =
      fmt::format("NUMA node {}, core{} {}, {}, {}", node.os_index,
                  set.threads.size() == 1 ? "" : "s", core_list(set.threads), topology.cpu_model,
                  human_bytes(static_cast<double>(info.total_bytes)));
  info.hardware = fmt::format("{}, {} cores of kind {}", topology.cpu_model, set.threads.size(),
                              core_list(set.kinds));
  return info;
}

void check_cores_disjoint(const std::string& first, const std::string& second) {
  const CpuSet a = resolve_cpu_set(machine_topology(), first);
  const CpuSet b = resolve_cpu_set(machine_topology(), second);
  std::vector<int> shared;
  std::set_intersection(a.reserved.begin(), a.reserved.end(), b.reserved.begin(), b.reserved.end(),
                        std::back_inserter(shared));
  if (shared.empty()) return;
  fail(ErrorKind::kUsage, "{} and {} share core{} {}; give each device cores of its own", first,
       second, shared.size() == 1 ? "" : "s", core_list(shared));
}

Backend cpu_backend() {
  Backend backend;
  backend.prefix = "cpu";
  backend.list = [] {
    std::vector<DeviceInfo> devices;
    for (size_t i = 0; i < machine_topology().nodes.size(); ++i) {
      devices.push_back(
          describe_cpu(resolve_cpu_set(machine_topology(), fmt::format("cpu:{}", i))));
    }
    return devices;
  };
  backend.find = [](const std::string& name) {
    return describe_cpu(resolve_cpu_set(machine_topology(), name));
  };
  backend.open = [](const std::string& name, const OpenOptions& options) {
    CpuDeviceOptions cpu;
    cpu.name = name;
    cpu.cores = resolve_cpu_set(machine_topology(), name).threads;
    cpu.threads = options.threads;
    return std::make_unique<CpuDevice>(std::move(cpu));
  };
  backend.check_disjoint = check_cores_disjoint;
  return backend;
}

// ---- reference

Backend reference_backend() {
  Backend backend;
  backend.prefix = "reference";
  backend.listed = false;
  backend.find = [](const std::string& name) {
    DeviceInfo info;
    info.name = name == "reference" ? "reference:0" : name;
    const std::string index = info.name.substr(std::min<size_t>(10, info.name.size()));
    if (!info.name.starts_with("reference:") || index.empty() || index.size() > 3 ||
        index.find_first_not_of("0123456789") != std::string::npos ||
        (index.size() > 1 && index[0] == '0')) {
      fail(ErrorKind::kDevice, "{}: no such device; write reference:0, up to reference:999", name);
    }
    const HostMemory memory = host_memory();
    info.total_bytes = memory.total;
    info.free_bytes = memory.free;
    info.n_cores = 1;
    info.memory_pool = "host";
    info.description = "plain loops on one thread, the yardstick for tests";
    info.hardware = "reference on " + machine_topology().cpu_model;
    return info;
  };
  backend.open = [](const std::string& name, const OpenOptions&) {
    return std::make_unique<ReferenceDevice>(name);
  };
  return backend;
}

// ---- the table

struct Table {
  std::mutex mutex;
  std::map<std::string, Backend> backends;  // by prefix
};

Table& table() {
  static Table table;
  static std::once_flag filled;
  std::call_once(filled, [] {
    for (Backend backend : {cpu_backend(), reference_backend()}) {
      std::string prefix = backend.prefix;
      table.backends.emplace(std::move(prefix), std::move(backend));
    }
  });
  return table;
}

std::vector<Backend> all_backends() {
  Table& all = table();
  const std::scoped_lock lock(all.mutex);
  std::vector<Backend> backends;
  for (const auto& [prefix, backend] : all.backends) backends.push_back(backend);
  return backends;
}

std::string prefix_of(const std::string& name) { return name.substr(0, name.find_first_of(":[")); }

Backend backend_of(const std::string& name) {
  const std::string prefix = prefix_of(name);
  {
    Table& all = table();
    const std::scoped_lock lock(all.mutex);
    const auto found = all.backends.find(prefix);
    if (found != all.backends.end()) return found->second;
  }
  std::string known;
  for (const DeviceInfo& device : list_devices()) {
    known += (known.empty() ? "" : ", ") + device.name;
  }
  fail(ErrorKind::kDevice, "{}: no such device; this machine has {}", name, known);
}

}  // namespace

void add_backend(Backend backend) {
  Table& all = table();
  const std::scoped_lock lock(all.mutex);
  std::string prefix = backend.prefix;
  all.backends.insert_or_assign(std::move(prefix), std::move(backend));
}

std::vector<DeviceInfo> list_devices() {
  std::vector<DeviceInfo> devices;
  for (const Backend& backend : all_backends()) {
    if (!backend.listed) continue;
    for (DeviceInfo& device : backend.list()) devices.push_back(std::move(device));
  }
  return devices;
}

DeviceInfo find_device(const std::string& name) { return backend_of(name).find(name); }

std::string canonical_device_name(const std::string& name) { return find_device(name).name; }

std::unique_ptr<Device> open_device(const std::string& name, OpenOptions options) {
  const Backend backend = backend_of(name);
  return backend.open(backend.find(name).name, options);
}

void check_device_list(const std::vector<std::string>& names) {
  if (names.empty()) {
    fail(ErrorKind::kUsage, "no devices; name at least one, such as {}",
         list_devices().front().name);
  }
  std::unordered_set<std::string> seen;
  for (const std::string& name : names) {
    if (!seen.insert(name).second) {
      fail(ErrorKind::kUsage, "device {} stands twice; name each device once", name);
    }
  }
  for (size_t i = 0; i < names.size(); ++i) {
    const Backend backend = backend_of(names[i]);
    if (!backend.check_disjoint) continue;
    for (size_t j = 0; j < i; ++j) {
      if (prefix_of(names[j]) == backend.prefix) backend.check_disjoint(names[j], names[i]);
    }
  }
}

std::vector<std::string> parse_device_list(const std::string& text) {
  std::vector<std::string> names;
  for (const std::string& item : split_list(text)) {
    if (item.empty()) {
      fail(ErrorKind::kUsage, "'{}' has an empty device name; separate names by single commas",
           text);
    }
    names.push_back(canonical_device_name(item));
  }
  check_device_list(names);
  return names;
}

}  // namespace quintet
