// Rows as the work of sixteen work-items each, as on a device without vectors: the bits of the CPU.
#include "backends/opencl/row_lanes.h"

#include <gtest/gtest.h>

#include <memory>

#include "backends/opencl/opencl_device.h"
#include "backends/opencl/opencl_testing.h"
#include "backends/registry.h"
#include "backends/row_bits.h"

namespace quintet::opencl {
namespace {

class SessionWithoutVectors : public QueueSession {
 public:
  SessionWithoutVectors(const FoundDevice& device, size_t work_group)
      : QueueSession(device), limits_(QueueSession::limits()) {
    limits_.float_lanes = 1;
    limits_.work_group = std::min(limits_.work_group, work_group);
  }
  const Limits& limits() const override { return limits_; }

 private:
  Limits limits_;
};

class RowLanesTest : public testing::TestWithParam<row_bits::Case> {};

TEST_P(RowLanesTest, GroupsHaveTheBitsOfTheCpu) {
  const auto devices = devices_under_test();
  if (devices.empty()) GTEST_SKIP() << "no OpenCL device on this machine";
  const auto cpu = open_device("cpu:0");
  OpenclDevice device(std::make_unique<SessionWithoutVectors>(devices.front(), 256));
  GetParam().run(device, *cpu);
}

INSTANTIATE_TEST_SUITE_P(Cases, RowLanesTest, testing::ValuesIn(row_bits::cases()),
                         row_bits::name_of_case);

TEST_F(OpenclTest, GroupsOfASingleRowHaveTheBitsOfTheCpu) {
  const auto cpu = open_device("cpu:0");
  OpenclDevice groups(std::make_unique<SessionWithoutVectors>(device(), 24));
  row_bits::norms_bits(groups, *cpu);
}

TEST(RowLanesLayout, FollowsTheDevice) {
  const RowLanes vectors({.work_group = 4096, .local_bytes = 1 << 20, .float_lanes = 16});
  EXPECT_TRUE(vectors.in_vector());
  EXPECT_EQ(vectors.local(), (Session::Range{1, 1, 1}));
  const RowLanes groups({.work_group = 100, .local_bytes = 32768, .float_lanes = 1});
  EXPECT_EQ(groups.local(), (Session::Range{16, 6, 1}));
  EXPECT_EQ(groups.global(13, 2), (Session::Range{32, 18, 1}));
  const RowLanes small({.work_group = 8, .local_bytes = 32768, .float_lanes = 1});
  EXPECT_TRUE(small.in_vector());
}

}  // namespace
}  // namespace quintet::opencl
