#include "placement/host_bytes.h"

#include <gtest/gtest.h>

namespace quintet {
namespace {

constexpr double kMiB = 1 << 20;

// Rows of one record stand three times: handed over, waiting, written.
TEST(HostBytes, ALongRecordCountsThrice) {
  const HostLoad load = {.d_model = 64,
                         .batch_rows = 512,
                         .longest_rows = 40000,
                         .longest = 40000,
                         .n_records = 1,
                         .hdf5 = true};
  HostLoad longer = load;
  longer.longest_rows = 80000;
  EXPECT_NEAR(static_cast<double>(host_bytes(longer) - host_bytes(load)), 3.125 * 40000 * 64 * 4,
              2);
  longer.bytes_per_number = 2;
  EXPECT_NEAR(static_cast<double>(host_bytes(longer) - host_bytes(load)),
              3.125 * 40000 * 64 * 4 - 80000 * 64 * 2, 2);
}

// Measured peaks of the tiny example, less what stood before and on the device, in MiB.
TEST(HostBytes, IsWhatWasMeasured) {
  const auto mib = [](const HostLoad& load) {
    return static_cast<double>(host_bytes(load)) / kMiB;
  };
  HostLoad load = {.d_model = 64,
                   .batch_rows = 512,
                   .longest_rows = 600,
                   .longest = 600,
                   .n_records = 1500,
                   .hdf5 = true,
                   .n_threads = 2};
  EXPECT_NEAR(mib(load), 9.7, 0.6);
  load.n_threads = 64;
  EXPECT_NEAR(mib(load), 18.4, 0.9);
  load.n_threads = 2;
  load.hdf5 = false;
  EXPECT_NEAR(mib(load), 5.0, 0.6);
  load = {.d_model = 64,
          .batch_rows = 512,
          .longest_rows = 40000,
          .longest = 40000,
          .n_records = 1,
          .hdf5 = true,
          .n_threads = 2};
  EXPECT_NEAR(mib(load), 30.7, 1.5);
}

TEST(HostBytes, ThreadsAndStagesTakeTheirShare) {
  const HostLoad load = {.d_model = 64, .batch_rows = 2, .longest_rows = 1, .longest = 1000};
  HostLoad more = load;
  more.n_threads = 11;
  EXPECT_NEAR(static_cast<double>(host_bytes(more) - host_bytes(load)), 10 * (0.14 * kMiB + 4000),
              2);
  more = load;
  more.n_stages = 3;
  EXPECT_NEAR(static_cast<double>(host_bytes(more) - host_bytes(load)), 2 * kMiB, 2);
}

}  // namespace
}  // namespace quintet
