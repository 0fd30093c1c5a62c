#include "backends/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>
#include <thread>

#include "quintet/error.h"

namespace quintet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// hwloc's own description of a machine in place of this one.
Topology machine_of(const char* description) {
  setenv("HWLOC_SYNTHETIC", description, 1);
  const Topology topology = read_topology();
  unsetenv("HWLOC_SYNTHETIC");
  return topology;
}

std::string message(const Topology& topology, const std::string& name) {
  try {
    resolve_cpu_set(topology, name);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kDevice);
    return error.what();
  }
  ADD_FAILURE() << name << " was accepted";
  return {};
}

TEST(Topology, NodesHaveTheirCores) {
  const Topology topology = machine_of("package:2 [numa] core:2 pu:2");
  ASSERT_EQ(topology.nodes.size(), 2U);
  ASSERT_EQ(topology.nodes[1].cores.size(), 4U);
  EXPECT_EQ(topology.nodes[1].cores[0].os_index, 4);
  EXPECT_EQ(topology.nodes[1].cores[0].physical, topology.nodes[1].cores[1].physical);
  EXPECT_NE(topology.nodes[1].cores[1].physical, topology.nodes[1].cores[2].physical);
  EXPECT_GT(topology.nodes[0].total_bytes, 0U);
}

TEST(Topology, ADeviceTakesOneThreadOfEachPhysicalCore) {
  const Topology topology = machine_of("package:2 [numa] core:2 pu:2");
  const CpuSet set = resolve_cpu_set(topology, "cpu:1");
  EXPECT_THAT(set.threads, ElementsAre(4, 6));
  EXPECT_THAT(set.reserved, ElementsAre(4, 5, 6, 7));
  EXPECT_EQ(set.node, 1);
  EXPECT_EQ(resolve_cpu_set(topology, "cpu").name, "cpu:0");
}

TEST(Topology, NamedCoresAreTakenAsNamed) {
  const Topology topology = machine_of("package:2 [numa] core:2 pu:2");
  const CpuSet set = resolve_cpu_set(topology, "cpu[6,4-5,3]");
  EXPECT_EQ(set.name, "cpu[3-6]");
  EXPECT_THAT(set.threads, ElementsAre(3, 4, 5, 6));
  EXPECT_EQ(set.node, 1);
  EXPECT_EQ(resolve_cpu_set(topology, "cpu[7,0,0]").name, "cpu[0,7]");
}

TEST(Topology, MissingDevicesAreRefusedWithWhatThereIs) {
  const Topology topology = machine_of("package:2 [numa] core:2 pu:1");
  EXPECT_THAT(message(topology, "cpu:2"), HasSubstr("cpu:0 (cores 0-1), cpu:1 (cores 2-3)"));
  EXPECT_THAT(message(topology, "cpu[1,5-6]"), HasSubstr("no such core: 5-6"));
  for (const char* name : {"cpu:", "cpu:x", "cpu:-1", "cpu:99999999999", "cpu[]", "cpu[", "cpu[1",
                           "cpu]", "cpu[2-1]", "cpu[a]", "cpu[0,,1]", "cpu[0-]", "cpu[-1]",
                           "cpu[0-99999999]", "cpu[4294967296]", "cpux", "cpu[0-1-1]", ""}) {
    message(topology, name);
  }
}

TEST(Topology, RestrictedToTheCoresAllowed) {
  const Topology topology =
      restrict_topology(machine_of("package:2 [numa] core:2 pu:2"), {5, 6, 7});
  ASSERT_EQ(topology.nodes.size(), 1U);
  EXPECT_THAT(resolve_cpu_set(topology, "cpu:0").threads, ElementsAre(5, 6));
  EXPECT_THAT(message(topology, "cpu[4]"), HasSubstr("no such core: 4"));
}

TEST(Topology, WithoutNumaThereIsOneNode) {
  const Topology topology = machine_of("core:3 pu:1");
  ASSERT_EQ(topology.nodes.size(), 1U);
  EXPECT_EQ(topology.nodes[0].cores.size(), 3U);
}

TEST(Topology, ThisMachineFollowsTheAffinityMask) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  const Topology whole = read_topology();
  size_t cores = 0;
  for (const NumaNode& node : whole.nodes) cores += node.cores.size();
  EXPECT_EQ(cores, static_cast<size_t>(CPU_COUNT(&before)));
  const int last = whole.nodes.back().cores.back().os_index;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(last, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  const Topology narrow = read_topology();
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
  ASSERT_EQ(narrow.nodes.size(), 1U);
  ASSERT_EQ(narrow.nodes[0].cores.size(), 1U);
  EXPECT_EQ(narrow.nodes[0].cores[0].os_index, last);
}

TEST(Topology, CoreListsAreCompressed) {
  EXPECT_EQ(core_list({6, 0, 1, 2, 3, 1}), "0-3,6");
  EXPECT_EQ(core_list({4}), "4");
  EXPECT_EQ(core_list({}), "");
}

}  // namespace
}  // namespace quintet
