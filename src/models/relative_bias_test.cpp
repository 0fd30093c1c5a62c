#include "models/relative_bias.h"

#include <gtest/gtest.h>

#include <sstream>

#include "backends/reference/reference_device.h"
#include "core/json.h"

namespace quintet {
namespace {

// Buckets of distances -1200 .. 1200 as the original computes them.
TEST(RelativeBucket, EqualsTheOriginalAtEveryDistance) {
  const auto tables = parse_json_file(QUINTET_FIXTURES "/models/relative_buckets.json");
  ASSERT_EQ(tables.size(), 10U);
  for (const auto& [name, expected] : tables.items()) {
    std::istringstream words(name);
    std::string direction;
    std::string number;
    std::getline(words, direction, '.');
    RelativeBuckets buckets{.bidirectional = direction == "bidirectional"};
    std::getline(words, number, '.');
    buckets.count = std::stoll(number);
    std::getline(words, number, '.');
    buckets.max_distance = std::stoll(number);
    for (int64_t distance = -1200; distance <= 1200; ++distance) {
      EXPECT_EQ(relative_bucket(distance, buckets),
                expected[static_cast<size_t>(distance + 1200)].get<int64_t>())
          << name << " at " << distance;
    }
  }
}

// Far beyond any length, and with an odd number of buckets, a bucket is one of those there are.
TEST(RelativeBucket, StaysInRange) {
  for (const int64_t count : {4, 5, 7, 32}) {
    for (const int64_t distance : {-2000000000, -129, -1, 0, 1, 3, 128, 2000000000}) {
      for (const bool bidirectional : {true, false}) {
        const int64_t bucket =
            relative_bucket(distance, {.count = count, .bidirectional = bidirectional});
        EXPECT_GE(bucket, 0);
        EXPECT_LT(bucket, count);
      }
    }
  }
}

TEST(RelativeBias, TableGrowsAndKeepsItsValues) {
  std::vector<float> learned(32 * 2);
  for (size_t i = 0; i < learned.size(); ++i) learned[i] = static_cast<float>(i);
  const HostView view{.name = "bias",
                      .data = reinterpret_cast<const std::byte*>(learned.data()),
                      .dtype = DType::kFloat32,
                      .shape = {32, 2}};
  ReferenceDevice device;
  RelativeBias bias(view, {});
  const auto value = [&](int64_t max_len, int64_t head, int64_t distance) {
    bias.fit(device, max_len);
    const Tensor& table = bias.table();
    EXPECT_GE(table.cols(), 2 * max_len - 1);
    return table.row<float>(head)[distance + (table.cols() - 1) / 2];
  };
  EXPECT_EQ(value(1, 0, 0), learned[0]);
  const auto* before = bias.table().buffer().get();
  bias.fit(device, 5);
  EXPECT_EQ(bias.table().buffer().get(), before);
  bias.fit(device, 3);
  EXPECT_EQ(bias.table().buffer().get(), before);
  for (const int64_t distance : {-150, -9, 0, 1, 64, 150}) {
    const auto bucket = static_cast<size_t>(relative_bucket(distance, {}));
    EXPECT_EQ(value(200, 1, distance), learned[2 * bucket + 1]);
  }
  EXPECT_LE(device.memory().used, static_cast<size_t>(RelativeBias::bytes_per_len(2) * (200 + 64)));
}

}  // namespace
}  // namespace quintet
