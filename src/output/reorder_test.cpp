#include "output/reorder.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace quintet {
namespace {

TEST(Reorder, HandsOutInOrder) {
  Reorder<std::string> reorder(5);
  std::vector<std::string> out;
  for (const uint64_t number : {7, 5, 9, 6, 8}) {
    reorder.push(number, std::to_string(number));
    while (auto item = reorder.pop()) out.push_back(*item);
  }
  EXPECT_EQ(out, (std::vector<std::string>{"5", "6", "7", "8", "9"}));
  EXPECT_EQ(reorder.waiting(), 0U);
  EXPECT_EQ(reorder.next(), 10U);
}

TEST(Reorder, WaitsForTheGap) {
  Reorder<int> reorder;
  reorder.push(1, 1);
  EXPECT_FALSE(reorder.pop());
  EXPECT_EQ(reorder.waiting(), 1U);
}

}  // namespace
}  // namespace quintet
