#include "backends/topology.h"

#include <hwloc.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <new>

#include "backends/host_memory.h"
#include "core/error.h"
#include "core/split_list.h"

namespace quintet {
namespace {

struct TopologyDeleter {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using TopologyPtr = std::unique_ptr<hwloc_topology, TopologyDeleter>;

struct BitmapDeleter {
  void operator()(hwloc_bitmap_t bitmap) const { hwloc_bitmap_free(bitmap); }
};
using BitmapPtr = std::unique_ptr<hwloc_bitmap_s, BitmapDeleter>;

TopologyPtr load_topology() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) throw std::bad_alloc();
  TopologyPtr topology(raw);
  if (hwloc_topology_load(raw) != 0) {
    fail(ErrorKind::kDevice, "cannot read this machine's cores (hwloc failed); is /sys mounted?");
  }
  return topology;
}

// Cores that the affinity mask of this process allows; those of another machine's description
// (HWLOC_SYNTHETIC, HWLOC_XMLFILE) are all allowed.
BitmapPtr allowed_cores(hwloc_topology_t topology) {
  BitmapPtr allowed(hwloc_bitmap_dup(hwloc_topology_get_allowed_cpuset(topology)));
  if (!allowed) throw std::bad_alloc();
  const BitmapPtr bound(hwloc_bitmap_alloc());
  if (hwloc_topology_is_thissystem(topology) != 0 && bound != nullptr &&
      hwloc_get_cpubind(topology, bound.get(), HWLOC_CPUBIND_PROCESS) == 0) {
    hwloc_bitmap_and(allowed.get(), allowed.get(), bound.get());
  }
  return allowed;
}

Core describe_core(hwloc_topology_t topology, hwloc_obj_t pu) {
  const hwloc_obj_t physical = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_CORE, pu);
  const int kind = hwloc_cpukinds_get_by_cpuset(topology, pu->cpuset, 0);
  return {.os_index = static_cast<int>(pu->os_index),
          .physical =
              static_cast<int>(physical != nullptr ? physical->logical_index : pu->logical_index),
          .kind = std::max(0, kind)};
}

// The cores nearest to a NUMA node. Nodes of memory alone have none or share those of another one,
// which came first.
NumaNode describe_node(hwloc_topology_t topology, hwloc_obj_t node, hwloc_bitmap_t left) {
  NumaNode described;
  described.os_index = static_cast<int>(node->os_index);
  described.total_bytes = node->attr->numanode.local_memory;
  hwloc_obj_t pu = nullptr;
  while ((pu = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PU, pu)) != nullptr) {
    if (hwloc_bitmap_isset(node->cpuset, pu->os_index) == 0) continue;
    if (hwloc_bitmap_isset(left, pu->os_index) == 0) continue;
    described.cores.push_back(describe_core(topology, pu));
    hwloc_bitmap_clr(left, pu->os_index);
  }
  std::sort(described.cores.begin(), described.cores.end(),
            [](const Core& a, const Core& b) { return a.os_index < b.os_index; });
  return described;
}

std::string cpu_model(hwloc_topology_t topology) {
  for (const hwloc_obj_type_t type : {HWLOC_OBJ_PACKAGE, HWLOC_OBJ_MACHINE}) {
    const hwloc_obj_t object = hwloc_get_obj_by_type(topology, type, 0);
    const char* model =
        object == nullptr ? nullptr : hwloc_obj_get_info_by_name(object, "CPUModel");
    if (model != nullptr && *model != '\0') return model;
  }
  return "CPU";
}

[[noreturn]] void refuse_device(const Topology& topology, const std::string& name,
                                const std::string& problem) {
  std::string cores;
  for (size_t i = 0; i < topology.nodes.size(); ++i) {
    std::vector<int> indices;
    for (const Core& core : topology.nodes[i].cores) indices.push_back(core.os_index);
    cores += fmt::format("{}cpu:{} (cores {})", i == 0 ? "" : ", ", i, core_list(indices));
  }
  fail(ErrorKind::kDevice, "{}: {}; this process has {}", name, problem, cores);
}

// A whole non-negative decimal number, or -1.
int parse_index(std::string_view text) {
  int value = -1;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
  return whole && value >= 0 && text.front() != '-' ? value : -1;
}

// "0-3,6" to {0, 1, 2, 3, 6}, sorted; empty where the text is not such a list.
std::vector<int> parse_cores(const std::string& text) {
  constexpr int kMost = 1 << 16;  // cores of one device; more is a slip of the pen
  std::vector<int> cores;
  for (const std::string& item : split_list(text)) {
    const size_t dash = item.find('-');
    const int first = item.empty() ? -1 : parse_index(item.substr(0, dash));
    const std::string end = dash == std::string::npos ? item : item.substr(dash + 1);
    const int last = end.empty() ? -1 : parse_index(end);
    if (first < 0 || last < first || last - first > kMost || cores.size() > kMost) return {};
    for (int core = first; core <= last; ++core) cores.push_back(core);
  }
  std::sort(cores.begin(), cores.end());
  cores.erase(std::unique(cores.begin(), cores.end()), cores.end());
  return cores;
}

CpuSet named_cores(const Topology& topology, const std::string& name) {
  const auto cores = parse_cores(name.substr(4, name.size() - 5));
  if (cores.empty()) {
    refuse_device(topology, name, "not a list of cores; write cpu[0-3] or cpu[0,2,4-5]");
  }
  CpuSet set;
  set.name = "cpu[" + core_list(cores) + "]";
  set.threads = cores;
  set.reserved = cores;
  size_t most = 0;
  std::vector<int> missing = cores;
  for (size_t i = 0; i < topology.nodes.size(); ++i) {
    size_t here = 0;
    for (const Core& core : topology.nodes[i].cores) {
      if (!std::binary_search(cores.begin(), cores.end(), core.os_index)) continue;
      std::erase(missing, core.os_index);
      set.kinds.push_back(core.kind);
      ++here;
    }
    if (here > most) set.node = static_cast<int>(i);
    most = std::max(most, here);
  }
  if (!missing.empty()) {
    refuse_device(topology, name, fmt::format("no such core: {}", core_list(missing)));
  }
  return set;
}

CpuSet whole_node(const Topology& topology, const std::string& name, int index) {
  if (index < 0 || static_cast<size_t>(index) >= topology.nodes.size()) {
    refuse_device(topology, name, "no such device");
  }
  CpuSet set;
  set.name = fmt::format("cpu:{}", index);
  set.node = index;
  std::vector<int> seen;
  for (const Core& core : topology.nodes[static_cast<size_t>(index)].cores) {
    set.reserved.push_back(core.os_index);
    if (std::find(seen.begin(), seen.end(), core.physical) != seen.end()) continue;
    seen.push_back(core.physical);
    set.threads.push_back(core.os_index);
    set.kinds.push_back(core.kind);
  }
  return set;
}

}  // namespace

Topology read_topology() {
  const TopologyPtr loaded = load_topology();
  const BitmapPtr left = allowed_cores(loaded.get());
  Topology topology;
  topology.cpu_model = cpu_model(loaded.get());
  hwloc_obj_t node = nullptr;
  while ((node = hwloc_get_next_obj_by_type(loaded.get(), HWLOC_OBJ_NUMANODE, node)) != nullptr) {
    NumaNode described = describe_node(loaded.get(), node, left.get());
    if (!described.cores.empty()) topology.nodes.push_back(std::move(described));
  }
  if (topology.nodes.empty()) {
    fail(ErrorKind::kDevice, "no core is allowed to this process; look at taskset and its cgroup");
  }
  const size_t total = host_memory().total;
  for (NumaNode& described : topology.nodes) {
    if (described.total_bytes == 0) described.total_bytes = total;
  }
  return topology;
}

const Topology& machine_topology() {
  static const Topology topology = read_topology();
  return topology;
}

Topology restrict_topology(const Topology& topology, const std::vector<int>& os_indices) {
  Topology restricted = topology;
  for (NumaNode& node : restricted.nodes) {
    std::erase_if(node.cores, [&](const Core& core) {
      return std::find(os_indices.begin(), os_indices.end(), core.os_index) == os_indices.end();
    });
  }
  std::erase_if(restricted.nodes, [](const NumaNode& node) { return node.cores.empty(); });
  return restricted;
}

CpuSet resolve_cpu_set(const Topology& topology, const std::string& name) {
  if (name == "cpu") return whole_node(topology, name, 0);
  CpuSet set;
  if (name.starts_with("cpu:")) {
    const std::string index = name.substr(4);
    set = whole_node(topology, name, index.empty() ? -1 : parse_index(index));
  } else if (name.starts_with("cpu[") && name.ends_with("]")) {
    set = named_cores(topology, name);
  } else {
    refuse_device(topology, name, "not a device's name; write cpu:0 or cpu[0-3]");
  }
  std::sort(set.kinds.begin(), set.kinds.end());
  set.kinds.erase(std::unique(set.kinds.begin(), set.kinds.end()), set.kinds.end());
  return set;
}

std::string core_list(std::vector<int> os_indices) {
  std::sort(os_indices.begin(), os_indices.end());
  os_indices.erase(std::unique(os_indices.begin(), os_indices.end()), os_indices.end());
  std::string text;
  for (size_t begin = 0; begin < os_indices.size();) {
    size_t end = begin + 1;
    while (end < os_indices.size() && os_indices[end] == os_indices[end - 1] + 1) ++end;
    text += text.empty() ? "" : ",";
    text += end - begin == 1 ? fmt::format("{}", os_indices[begin])
                             : fmt::format("{}-{}", os_indices[begin], os_indices[end - 1]);
    begin = end;
  }
  return text;
}

}  // namespace quintet
