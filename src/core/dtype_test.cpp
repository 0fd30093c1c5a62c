#include "core/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace quintet {
namespace {

// Every finite float16 and bfloat16 survives the way to float32 and back.
TEST(DType, RoundTripsEveryHalf) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float wide = float_from_float16(half);
    if (!std::isnan(wide)) {
      EXPECT_EQ(float16_from_float(wide), half);
    }
    const float brain = float_from_bfloat16(half);
    if (!std::isnan(brain)) {
      EXPECT_EQ(bfloat16_from_float(brain), half);
    }
  }
}

TEST(DType, RoundsToNearestEven) {
  EXPECT_EQ(float16_from_float(65504.0F), 0x7BFF);
  EXPECT_EQ(float16_from_float(65519.0F), 0x7BFF);  // below the midpoint to 65536
  EXPECT_EQ(float16_from_float(65520.0F), 0x7C00);  // the midpoint goes to the even one: inf
  EXPECT_EQ(float16_from_float(1.0F + 0x1p-11F), 0x3C00);
  EXPECT_EQ(float16_from_float(1.0F + 3 * 0x1p-11F), 0x3C02);
  EXPECT_EQ(float16_from_float(0x1p-25F), 0x0000);
  EXPECT_EQ(float16_from_float(0x1.8p-24F), 0x0002);
  EXPECT_EQ(bfloat16_from_float(1.0F + 0x1p-8F), 0x3F80);
  EXPECT_EQ(bfloat16_from_float(1.0F + 3 * 0x1p-8F), 0x3F82);
  EXPECT_EQ(bfloat16_from_float(std::numeric_limits<float>::max()), 0x7F80);
  EXPECT_TRUE(std::isnan(
      float_from_bfloat16(bfloat16_from_float(std::numeric_limits<float>::quiet_NaN()))));
}

}  // namespace
}  // namespace quintet
