#include "backends/host_memory.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace quintet {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMiB = size_t{1} << 20;

class HostMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) /
            ("quintet memory " +
             std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(root_);
    write("proc/meminfo",
          "MemTotal:       1048576 kB\nMemFree:  1000 kB\nMemAvailable:    524288 kB\n");
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(const std::string& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  HostMemory read() { return host_memory(root_ / "proc", root_ / "cgroup"); }

  fs::path root_;
};

TEST_F(HostMemoryTest, WithoutLimitsItIsTheMachines) {
  EXPECT_EQ(read().total, 1024 * kMiB);
  EXPECT_EQ(read().free, 512 * kMiB);
}

TEST_F(HostMemoryTest, Version2LimitsOfEveryLevelCount) {
  write("proc/self/cgroup", "0::/user.slice/job\n");
  write("cgroup/user.slice/job/memory.max", "max\n");
  write("cgroup/user.slice/memory.max", "104857600\n");  // 100 MiB
  write("cgroup/user.slice/memory.current", "62914560\n");
  write("cgroup/user.slice/memory.stat", "anon 5\ninactive_file 10485760\nactive_file 7\n");
  EXPECT_EQ(read().total, 100 * kMiB);
  EXPECT_EQ(read().free, 50 * kMiB);
}

TEST_F(HostMemoryTest, Version1) {
  write("proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory:/docker/1\n0::/\n");
  write("cgroup/memory/docker/1/memory.limit_in_bytes", "209715200\n");
  write("cgroup/memory/docker/1/memory.usage_in_bytes", "104857600\n");
  write("cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(read().total, 200 * kMiB);
  EXPECT_EQ(read().free, 100 * kMiB);
}

// Inside a container the group's path may be that of the host; the limit then stands at the root.
TEST_F(HostMemoryTest, APathThatIsNotThereFallsBackToTheRoot) {
  write("proc/self/cgroup", "0::/../../host/path\n");
  write("cgroup/memory.max", "52428800\n");
  write("cgroup/memory.current", "99999999999\n");
  EXPECT_EQ(read().total, 50 * kMiB);
  EXPECT_EQ(read().free, 0U);
}

TEST_F(HostMemoryTest, NonsenseIsPassedOver) {
  write("proc/self/cgroup", "x\n::\n0:\n0::\n");
  write("cgroup/memory.max", "-1\n");
  EXPECT_EQ(read().total, 1024 * kMiB);
}

TEST(HostMemory, ThisMachineHasSome) {
  EXPECT_GT(host_memory().total, 64 * kMiB);
  EXPECT_GT(host_memory().free, 0U);
  EXPECT_LE(host_memory().free, host_memory().total);
}

}  // namespace
}  // namespace quintet
