// Names of devices and parts of them.
#include "backends/opencl/platforms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/opencl/opencl_testing.h"

namespace quintet::opencl {
namespace {

using testing::HasSubstr;

class PlatformsTest : public OpenclTest {
 protected:
  bool divisible() const {
    return device().device.getInfo<CL_DEVICE_PARTITION_MAX_SUB_DEVICES>() >= 2;
  }
};

std::string error_of(const std::string& name) {
  try {
    find_devices(name);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kDevice);
    return error.what();
  }
  ADD_FAILURE() << name << " was found";
  return "";
}

TEST_F(PlatformsTest, EveryDeviceIsFoundUnderItsNumber) {
  for (const FoundDevice& listed : devices) {
    const auto found = find_devices(listed.info.name);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].device(), listed.device());
    EXPECT_EQ(found[0].info.description, listed.info.description);
    EXPECT_GT(found[0].info.total_bytes, 0U);
    EXPECT_GT(found[0].info.n_cores, 0);
    EXPECT_FALSE(found[0].info.memory_pool.empty());
  }
  EXPECT_EQ(find_devices("opencl")[0].info.name, "opencl:0");
  EXPECT_EQ(find_devices("opencl:0/1")[0].info.name, "opencl:0");
}

TEST_F(PlatformsTest, WhatIsNotThereIsAnErrorThatSaysWhatIs) {
  EXPECT_THAT(error_of("opencl:99"), HasSubstr(device().info.description));
  for (const char* name :
       {"opencl:", "opencl:x", "opencl:-1", "opencl:0/", "opencl:0/0", "opencl:0/2[",
        "opencl:0/2[]", "opencl:0/2[0]x", "opencl:0[1]", "open", "opencl:99999999999999999999"}) {
    EXPECT_THAT(error_of(name), HasSubstr("expected opencl:N")) << name;
  }
  EXPECT_THAT(error_of("opencl:0/100000"), HasSubstr("cannot be divided into 100000 parts"));
  EXPECT_THAT(error_of("opencl:0/2[2]"), HasSubstr("opencl:0/2[1]"));
}

TEST_F(PlatformsTest, XpuCountsTheIntelGpus) {
  int n = 0;
  for (const FoundDevice& listed : devices) {
    if ((listed.device.getInfo<CL_DEVICE_TYPE>() & CL_DEVICE_TYPE_GPU) == 0) continue;
    if (listed.device.getInfo<CL_DEVICE_VENDOR_ID>() != 0x8086) continue;
    EXPECT_EQ(find_devices("xpu:" + std::to_string(n++))[0].info.name, listed.info.name);
  }
  EXPECT_THAT(error_of("xpu:" + std::to_string(n)), HasSubstr("Intel GPU"));
}

TEST_F(PlatformsTest, PartsShareOutTheUnits) {
  if (!divisible()) GTEST_SKIP() << "the driver does not divide " << device().info.name;
  const int units = device().info.n_cores;
  for (int parts = 2; parts <= std::min(units, 3); ++parts) {
    const auto found = find_devices("opencl:0/" + std::to_string(parts));
    ASSERT_EQ(found.size(), static_cast<size_t>(parts));
    int sum = 0;
    for (const FoundDevice& part : found) {
      sum += part.info.n_cores;
      EXPECT_EQ(part.info.n_cores, part.device.getInfo<CL_DEVICE_MAX_COMPUTE_UNITS>());
      EXPECT_EQ(part.info.memory_pool, device().info.memory_pool);
      EXPECT_EQ(find_devices(part.info.name)[0].info.name, part.info.name);
    }
    EXPECT_EQ(sum, units);
    EXPECT_EQ(found[1].info.name, "opencl:0/" + std::to_string(parts) + "[1]");
  }
}

TEST_F(PlatformsTest, PartsShareHardwareWithTheWholeOnly) {
  if (!divisible()) GTEST_SKIP() << "the driver does not divide " << device().info.name;
  const auto parts = find_devices("opencl:0/2");
  EXPECT_TRUE(share_hardware(device(), device()));
  EXPECT_TRUE(share_hardware(device(), parts[0]));
  EXPECT_TRUE(share_hardware(parts[1], device()));
  EXPECT_TRUE(share_hardware(parts[1], parts[1]));
  EXPECT_FALSE(share_hardware(parts[0], parts[1]));
}

}  // namespace
}  // namespace quintet::opencl
