#include "placement/memory_limits.h"

#include <gtest/gtest.h>

#include "quintet/error.h"

namespace quintet {
namespace {

TEST(MemoryLimits, SizesHaveUnits) {
  EXPECT_EQ(parse_size("2GiB", "x"), int64_t{2} << 30);
  EXPECT_EQ(parse_size("500MB", "x"), 500000000);
  EXPECT_EQ(parse_size("1.5 KiB", "x"), 1536);
  EXPECT_EQ(parse_size("1048576", "x"), 1048576);
  EXPECT_EQ(parse_size("3kb", "x"), 3000);
  EXPECT_EQ(parse_size("1G", "x"), int64_t{1} << 30);
  EXPECT_EQ(parse_size("7B", "x"), 7);
}

TEST(MemoryLimits, RefusesWhatIsNotASize) {
  for (const char* text : {"", "GiB", "2QiB", "-1GiB", "0", "0.1", "nan", "inf", "1e3", "2 Gi Bx",
                           "9999999999TiB", "0x10", "1GiB1"}) {
    EXPECT_THROW(parse_size(text, "x"), Error) << text;
  }
}

TEST(MemoryLimits, PerDeviceAndForEveryDevice) {
  EXPECT_EQ(parse_memory_limits("2GiB").every, int64_t{2} << 30);
  const auto limits = parse_memory_limits("cpu[0,2]=2GiB, cpu[1] = 500MB,1KiB");
  EXPECT_EQ(limits.every, 1024);
  EXPECT_EQ(limits.per_device, (std::vector<std::pair<std::string, int64_t>>{
                                   {"cpu[0,2]", int64_t{2} << 30}, {"cpu[1]", 500000000}}));
}

TEST(MemoryLimits, RefusesBrokenLists) {
  for (const char* text :
       {"", " ", "=2GiB", " =2GiB", "cpu:0=", "a=1,a=2", "1,2", "a=1,,b=2", "a=1,"}) {
    EXPECT_THROW(parse_memory_limits(text), Error) << text;
  }
}

}  // namespace
}  // namespace quintet
