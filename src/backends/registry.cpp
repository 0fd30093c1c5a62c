#include "backends/registry.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <unordered_set>
#include <utility>

#include "backends/cpu/cpu_device.h"
#include "backends/host_memory.h"
#include "backends/module.h"
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
  backend.prefixes = {"cpu"};
  backend.built_in = true;
  backend.list = [] {
    std::vector<DeviceInfo> devices;
    for (size_t i = 0; i < machine_topology().nodes.size(); ++i) {
      devices.push_back(
          describe_cpu(resolve_cpu_set(machine_topology(), fmt::format("cpu:{}", i))));
    }
    return devices;
  };
  backend.find = [](const std::string& name) {
    return std::vector<DeviceInfo>{describe_cpu(resolve_cpu_set(machine_topology(), name))};
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
  backend.prefixes = {"reference"};
  backend.built_in = true;
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
    return std::vector<DeviceInfo>{std::move(info)};
  };
  backend.open = [](const std::string& name, const OpenOptions&) {
    return std::make_unique<ReferenceDevice>(name);
  };
  return backend;
}

// ---- the table

struct Table {
  std::mutex loading;  // held while modules are looked for, so that nobody misses one half-way
  std::mutex mutex;    // of all that follows
  std::vector<Backend> backends;
  std::map<std::string, std::string> tried;  // module files looked at; what was wrong, or empty
  std::vector<Device*> open;
};

Table& table() {
  static Table table;
  static std::once_flag filled;
  std::call_once(filled, [] { table.backends = {cpu_backend(), reference_backend()}; });
  return table;
}

std::string prefix_of(const std::string& name) { return name.substr(0, name.find_first_of(":[")); }

bool has_prefix(const Backend& backend, const std::string& prefix) {
  return std::ranges::find(backend.prefixes, prefix) != backend.prefixes.end();
}

std::optional<Backend> backend_with(const std::string& prefix) {
  Table& all = table();
  const std::scoped_lock lock(all.mutex);
  for (const Backend& backend : all.backends) {
    if (has_prefix(backend, prefix)) return backend;
  }
  return std::nullopt;
}

// Throws where a module's names are those of another backend. The kind itself may be there.
void check_names_free(const Backend& backend, const std::string& file) {
  for (const std::string& prefix : backend.prefixes) {
    const auto other = backend_with(prefix);
    if (!other || (!other->built_in && other->prefixes.front() == backend.prefixes.front())) {
      continue;
    }
    fail(ErrorKind::kDevice, "backend module {}: '{}' is {}; give its devices another name", file,
         prefix,
         other->built_in ? "a built-in kind of device"
                         : "a kind of device of " + other->prefixes.front());
  }
}

// Loads a module unless that was tried before; what is wrong with it is kept for messages. Of a
// kind that is there already, because --backend named it or a folder before had it, none is added.
void try_module(const std::filesystem::path& file) {
  Table& all = table();
  {
    const std::scoped_lock lock(all.mutex);
    if (!all.tried.emplace(file.string(), "").second) return;
  }
  std::string wrong;
  try {
    Backend backend = load_module(file);
    check_names_free(backend, file.string());
    if (!backend_with(backend.prefixes.front())) add_backend(std::move(backend));
  } catch (const Error& error) {
    wrong = error.what();
  }
  const std::scoped_lock lock(all.mutex);
  all.tried[file.string()] = wrong;
}

std::vector<std::string> load_found_modules() {
  Table& all = table();
  const std::scoped_lock loading(all.loading);
  for (const auto& file : module_files()) try_module(file);
  const std::scoped_lock lock(all.mutex);
  std::vector<std::string> wrong;
  for (const auto& [file, message] : all.tried) {
    if (!message.empty()) wrong.push_back(message);
  }
  return wrong;
}

// Whether a module could be called so.
bool is_kind(const std::string& prefix) {
  return !prefix.empty() && std::ranges::all_of(prefix, [](unsigned char c) {
    return std::islower(c) != 0 || std::isdigit(c) != 0 || c == '_';
  });
}

Backend backend_of(const std::string& name) {
  const std::string prefix = prefix_of(name);
  if (const auto backend = backend_with(prefix)) return *backend;
  load_found_modules();
  if (const auto backend = backend_with(prefix)) return *backend;
  std::vector<std::string> notes;
  std::string known;
  for (const DeviceInfo& device : list_devices(&notes)) {
    known += (known.empty() ? "" : ", ") + device.name;
  }
  std::string message = fmt::format("{}: no such device; this machine has {}", name, known);
  for (const std::string& note : notes) message += "; " + note;
  if (is_kind(prefix)) {
    message += fmt::format("; no libquintet_{}.so is in", prefix);
    for (const auto& folder : module_folders()) message += " " + folder.string();
    message += ": put the module there or name it by --backend";
  }
  throw Error(ErrorKind::kDevice, message);
}

// Visits the open devices of a backend; none is closed meanwhile. Whether there was one.
template <typename Visit>
bool visit_open(const Backend& backend, const Visit& visit) {
  Table& all = table();
  const std::scoped_lock lock(all.mutex);
  bool any = false;
  for (Device* device : all.open) {
    if (!has_prefix(backend, prefix_of(device->name()))) continue;
    visit(*device);
    any = true;
  }
  return any;
}

}  // namespace

void add_backend(Backend backend) {
  Table& all = table();
  const std::scoped_lock lock(all.mutex);
  std::erase_if(all.backends, [&](const Backend& other) {
    return other.prefixes.front() == backend.prefixes.front();
  });
  all.backends.push_back(std::move(backend));
}

std::string load_backend(const std::string& file) {
  Backend backend = load_module(file);
  check_names_free(backend, file);
  std::string kind = backend.prefixes.front();
  add_backend(std::move(backend));
  return kind;
}

std::vector<DeviceInfo> list_devices(std::vector<std::string>* notes) {
  std::vector<std::string> wrong = load_found_modules();
  std::vector<Backend> backends;
  {
    Table& all = table();
    const std::scoped_lock lock(all.mutex);
    backends = all.backends;
  }
  std::vector<DeviceInfo> devices;
  for (const Backend& backend : backends) {
    if (!backend.listed) continue;
    try {
      for (DeviceInfo& device : backend.list()) devices.push_back(std::move(device));
    } catch (const Error& error) {
      wrong.push_back(fmt::format("{}: {}", backend.prefixes.front(), error.what()));
    }
  }
  if (notes != nullptr) *notes = std::move(wrong);
  return devices;
}

std::vector<DeviceInfo> list_devices_of(const std::string& kind) {
  const Backend backend = backend_of(kind);
  if (!backend.list) {
    fail(ErrorKind::kDevice, "{}: devices of this kind are not counted; name them", kind);
  }
  return backend.list();
}

std::vector<std::string> canonical_device_names(const std::string& name) {
  std::vector<std::string> names;
  for (DeviceInfo& device : backend_of(name).find(name)) names.push_back(std::move(device.name));
  return names;
}

std::vector<std::string> devices_like(const std::string& name) {
  const std::string canonical = canonical_device_name(name);
  const size_t part = canonical.rfind('[');
  if (canonical.find('/') < part && part != std::string::npos) {
    return canonical_device_names(canonical.substr(0, part));
  }
  const Backend backend = backend_of(canonical);
  if (!backend.list) return {canonical};
  std::vector<std::string> names;
  for (DeviceInfo& device : backend.list()) names.push_back(std::move(device.name));
  return names;
}

DeviceInfo find_device(const std::string& name) {
  std::vector<DeviceInfo> found = backend_of(name).find(name);
  if (found.size() == 1) return std::move(found.front());
  std::string names;
  for (const DeviceInfo& device : found) names += (names.empty() ? "" : ", ") + device.name;
  fail(ErrorKind::kUsage, "{} stands for {} devices, and one is meant here; name one of {}", name,
       found.size(), names);
}

std::string canonical_device_name(const std::string& name) { return find_device(name).name; }

OpenedDevice open_device(const std::string& name, OpenOptions options) {
  const std::string canonical = canonical_device_name(name);
  OpenedDevice device(backend_of(canonical).open(canonical, options).release());
  Table& all = table();
  const std::scoped_lock lock(all.mutex);
  all.open.push_back(device.get());
  return device;
}

void DeviceCloser::operator()(Device* device) const {
  {
    Table& all = table();
    const std::scoped_lock lock(all.mutex);
    std::erase(all.open, device);
  }
  delete device;
}

size_t device_memory_in_use(const std::string& name) {
  const std::string canonical = canonical_device_name(name);
  const Backend backend = backend_of(canonical);
  if (backend.memory_in_use) return backend.memory_in_use(canonical);
  size_t bytes = 0;
  visit_open(backend, [&](const Device& device) {
    if (device.name() == canonical) bytes += device.memory().used;
  });
  return bytes;
}

bool manual_seed(const std::string& kind, uint64_t seed) {
  const Backend backend = backend_of(kind);
  if (backend.manual_seed) {
    backend.manual_seed(seed);
    return true;
  }
  return visit_open(backend, [&](Device& device) { device.manual_seed(seed); });
}

bool empty_cache(const std::string& kind) {
  const Backend backend = backend_of(kind);
  if (backend.empty_cache) {
    backend.empty_cache();
    return true;
  }
  return visit_open(backend, [&](Device& device) { device.empty_cache(); });
}

void check_device_list(const std::vector<std::string>& names) {
  if (names.empty()) {
    fail(ErrorKind::kUsage, "no devices; name at least one, such as {}",
         list_devices_of("cpu").front().name);
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
      if (has_prefix(backend, prefix_of(names[j]))) backend.check_disjoint(names[j], names[i]);
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
    for (std::string& name : canonical_device_names(item)) names.push_back(std::move(name));
  }
  check_device_list(names);
  return names;
}

}  // namespace quintet
