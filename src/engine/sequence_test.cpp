#include "engine/sequence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"

namespace quintet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::vector<int64_t> kIds{5, 6, 7, 1};

TEST(Sequence, CountsEveryIdWithoutMask) {
  const Sequence s = sequence_from_ids(kIds, {}, 10);
  EXPECT_THAT(s.tokens, ElementsAre(5, 6, 7, 1));
  EXPECT_THAT(s.positions, IsEmpty());
  EXPECT_EQ(s.pool_end, 4);
}

// Padding on either side is the same sequence as without: distances between tokens do not change.
TEST(Sequence, PaddingIsNoHole) {
  const std::vector<int64_t> ids{0, 0, 5, 6, 0};
  const Sequence s = sequence_from_ids(ids, std::vector<uint8_t>{0, 0, 1, 1, 0}, 10);
  EXPECT_THAT(s.tokens, ElementsAre(5, 6));
  EXPECT_THAT(s.positions, IsEmpty());
}

TEST(Sequence, HolesShiftPositions) {
  const Sequence s = sequence_from_ids(kIds, std::vector<uint8_t>{0, 1, 0, 1}, 10);
  EXPECT_THAT(s.tokens, ElementsAre(6, 1));
  EXPECT_THAT(s.positions, ElementsAre(0, 2));
}

TEST(Sequence, WhollyMaskedLeavesNothing) {
  EXPECT_THAT(sequence_from_ids(kIds, std::vector<uint8_t>(4), 10).tokens, IsEmpty());
}

TEST(Sequence, RefusesIdsAndMasksByName) {
  const auto problem = [](std::vector<int64_t> ids, std::vector<uint8_t> mask) -> std::string {
    try {
      sequence_from_ids(ids, mask, 10);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(problem({5, 10}, {}), HasSubstr("token 10 at position 1"));
  EXPECT_THAT(problem({-1}, {}), HasSubstr("token -1"));
  EXPECT_THAT(problem({99, 5}, {0, 1}), HasSubstr("token 99"));  // masked ids are checked too
  EXPECT_THAT(problem({5, 6}, {1}), HasSubstr("1 entries, input_ids 2"));
}

TEST(Sequence, UnmaskPutsZerosBack) {
  const std::vector<float> rows{1, 2, 3, 4};
  EXPECT_THAT(unmask_rows(rows, std::vector<uint8_t>{0, 1, 0, 1}, 2),
              ElementsAre(0, 0, 1, 2, 0, 0, 3, 4));
  EXPECT_THAT(unmask_rows(rows, {}, 2), ElementsAre(1, 2, 3, 4));
}

}  // namespace
}  // namespace quintet
