// The cores that this process may use: NUMA nodes from hwloc, less what the affinity mask (taskset)
// and the cgroup's cpuset take away.
#ifndef QUINTET_BACKENDS_TOPOLOGY_H_
#define QUINTET_BACKENDS_TOPOLOGY_H_

#include <cstddef>
#include <string>
#include <vector>

namespace quintet {

// A hardware thread that this process may run on.
struct Core {
  int os_index = 0;  // as the system and taskset count
  int physical = 0;  // hyperthreads of one physical core share this number
  int kind = 0;      // cores of one speed share this number (performance, efficiency)
};

struct NumaNode {
  int os_index = 0;
  size_t total_bytes = 0;   // memory that the node has
  std::vector<Core> cores;  // by os_index, at least one
};

struct Topology {
  std::string cpu_model;        // "AMD EPYC 7763 64-Core Processor"
  std::vector<NumaNode> nodes;  // those with cores for this process; cpu:N is nodes[N]
};

// A CPU device resolved: where its threads go.
struct CpuSet {
  std::string name;           // canonical: "cpu:0", "cpu[0-3,6]"
  int node = 0;               // index into Topology::nodes, where most of its cores are
  std::vector<int> threads;   // os_index for each thread: of cpu:N the first hyperthread of every
                              //   physical core, of cpu[...] exactly the cores named
  std::vector<int> reserved;  // every os_index that no other device may use
  std::vector<int> kinds;     // of `threads`, sorted, without repeats
};

// Reads the machine anew. Where the system tells nothing of NUMA there is one node.
Topology read_topology();

// What read_topology() gave at the first call: before any thread was pinned.
const Topology& machine_topology();

// Only the cores listed; nodes that lose all are dropped.
Topology restrict_topology(const Topology& topology, const std::vector<int>& os_indices);

// "cpu", "cpu:1", "cpu[0-3,6]". Throws Error(kDevice) that lists what there is.
CpuSet resolve_cpu_set(const Topology& topology, const std::string& name);

// {0, 1, 2, 3, 6} -> "0-3,6"; sorted, no repeats.
std::string core_list(std::vector<int> os_indices);

}  // namespace quintet

#endif  // QUINTET_BACKENDS_TOPOLOGY_H_
