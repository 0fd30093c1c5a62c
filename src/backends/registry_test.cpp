#include "backends/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>

#include "backends/measure.h"
#include "backends/reference/reference_device.h"
#include "backends/topology.h"
#include "core/error.h"

namespace quintet {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string message(const std::function<void()>& work, ErrorKind kind) {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return {};
}

int first_core() { return machine_topology().nodes[0].cores[0].os_index; }
std::string first_core_device() { return fmt::format("cpu[{}]", first_core()); }

TEST(Registry, ListsTheNodesOfThisMachine) {
  const auto devices = list_devices();
  ASSERT_FALSE(devices.empty());
  EXPECT_EQ(devices[0].name, "cpu:0");
  EXPECT_GT(devices[0].total_bytes, 0U);
  EXPECT_GE(devices[0].n_cores, 1);
  EXPECT_EQ(devices[0].memory_pool, "host");
  EXPECT_THAT(devices[0].description, HasSubstr("NUMA node"));
  for (const DeviceInfo& device : devices) EXPECT_NE(device.name, "reference:0");
}

TEST(Registry, NamesHaveOneSpelling) {
  EXPECT_EQ(canonical_device_name("cpu"), "cpu:0");
  EXPECT_EQ(canonical_device_name(fmt::format("cpu[{0},{0}-{0}]", first_core())),
            first_core_device());
  EXPECT_EQ(canonical_device_name("reference"), "reference:0");
}

TEST(Registry, OpensWhatItNames) {
  const auto device = open_device(first_core_device());
  EXPECT_EQ(device->name(), first_core_device());
  EXPECT_EQ(open_device("cpu", {.threads = 1})->name(), "cpu:0");
  EXPECT_EQ(open_device("reference:2")->name(), "reference:2");
}

TEST(Registry, UnknownDevicesAreRefusedWithWhatThereIs) {
  for (const char* name : {"cuda:2", "", "gpu", "CPU:0", "cpu0"}) {
    EXPECT_THAT(message([&] { open_device(name); }, ErrorKind::kDevice), HasSubstr("cpu:0"));
  }
  EXPECT_THAT(message([] { canonical_device_name("reference:x"); }, ErrorKind::kDevice),
              HasSubstr("reference:0"));
}

TEST(Registry, ListsSplitAtCommasOutsideBrackets) {
  EXPECT_THAT(parse_device_list(fmt::format("cpu[{0},{0}], reference:0", first_core())),
              ElementsAre(first_core_device(), "reference:0"));
}

TEST(Registry, ListsThatCannotBeAreRefused) {
  EXPECT_THAT(message([] { parse_device_list(""); }, ErrorKind::kUsage), HasSubstr("no devices"));
  EXPECT_THAT(message([] { parse_device_list("cpu:0,,reference"); }, ErrorKind::kUsage),
              HasSubstr("empty device name"));
  EXPECT_THAT(message([] { parse_device_list("cpu,cpu:0"); }, ErrorKind::kUsage),
              HasSubstr("cpu:0 stands twice"));
  EXPECT_THAT(
      message([] { parse_device_list("cpu:0," + first_core_device()); }, ErrorKind::kUsage),
      AllOf(HasSubstr("share core " + fmt::format("{}", first_core())), HasSubstr("cpu:0 and ")));
}

TEST(Registry, ABackendCanBeAdded) {
  Backend backend;
  backend.prefixes = {"toy"};
  backend.listed = false;
  backend.find = [](const std::string& name) {
    DeviceInfo info;
    info.name = name == "toy" ? "toy:0" : name;
    return std::vector<DeviceInfo>{info};
  };
  backend.open = [](const std::string& name, const OpenOptions&) {
    return std::make_unique<ReferenceDevice>(name);
  };
  add_backend(backend);
  EXPECT_EQ(open_device("toy")->name(), "toy:0");
  EXPECT_THAT(parse_device_list("toy:1,toy"), ElementsAre("toy:1", "toy:0"));
}

TEST(Registry, CountsWhatOpenDevicesHold) {
  EXPECT_EQ(device_memory_in_use("reference:5"), 0U);
  EXPECT_FALSE(empty_cache("reference"));
  EXPECT_FALSE(manual_seed("reference", 3));
  const auto first = open_device("reference:5");
  const auto other = open_device("reference:6");
  const Tensor x = first->allocate(3, 5);
  const size_t bytes = first->memory().used;
  EXPECT_GE(bytes, sizeof(float) * 3 * 5);
  {
    const auto second = open_device("reference:5");  // of another model
    const Tensor y = second->allocate(3, 5);
    EXPECT_EQ(device_memory_in_use("reference:5"), 2 * bytes);
  }
  EXPECT_EQ(device_memory_in_use("reference:5"), bytes);
  EXPECT_EQ(device_memory_in_use("reference:6"), 0U);
  EXPECT_TRUE(manual_seed("reference", 3));
  EXPECT_TRUE(empty_cache("reference"));
  EXPECT_FALSE(empty_cache("cpu"));
  const auto core = open_device(first_core_device());
  EXPECT_TRUE(empty_cache("cpu"));
  EXPECT_TRUE(manual_seed("cpu", 3));
}

TEST(Registry, MissingModulesAreSoughtWhereTheErrorSays) {
  EXPECT_THAT(
      message([] { open_device("nothing:0"); }, ErrorKind::kDevice),
      AllOf(HasSubstr("libquintet_nothing.so"), HasSubstr("--backend"), HasSubstr("lib/quintet")));
}

class Measure : public testing::TestWithParam<const char*> {};

TEST_P(Measure, GivesSpeedsSoonAndAllMemoryBack) {
  const auto device = open_device(GetParam());
  const auto begin = std::chrono::steady_clock::now();
  const DeviceSpeed speed = measure_device(*device);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  EXPECT_LT(took.count(), 10);  // 2 s on an idle machine
  for (const double value : {speed.float32_flops, speed.bfloat16_flops, speed.float16_flops,
                             speed.attention_flops, speed.bytes_per_second}) {
    EXPECT_GT(value, 1e6);
    EXPECT_LT(value, 1e15);
  }
  EXPECT_EQ(device->memory().used, 0U);
}

INSTANTIATE_TEST_SUITE_P(Devices, Measure, testing::Values("cpu:0", "reference:0"));

}  // namespace
}  // namespace quintet
