#include "engine/ordered_sink.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace quintet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Keeps what arrives, as lines.
class FakeOutput final : public Output {
 public:
  uint64_t next_ordinal() const override { return 0; }
  bool complete() const override { return false; }
  OutputCounts counts() const override { return {}; }
  uint64_t torn_bytes() const override { return 0; }
  void append(const Embedding& e) override {
    lines.push_back(fmt::format("{} {} rows: {}", e.id, e.n_rows, fmt::join(e.values, " ")));
  }
  bool shares_values() const override { return true; }
  void append_lines(const Embedding& e, std::string_view text) override {
    lines.push_back(fmt::format("{} as text: {}", e.id, text));
  }
  void append_same(const Embedding& e, uint64_t as_ordinal) override {
    lines.push_back(fmt::format("{} as {}", e.id, as_ordinal));
  }
  void reject(const Rejection& rejection) override {
    lines.push_back(fmt::format("{} rejected: {}", rejection.id, rejection.reason));
  }
  void flush() override {}
  OutputCounts finish() override { return {}; }

  std::vector<std::string> lines;
};

Entry entry(uint64_t ordinal) {
  Entry entry;
  entry.embedding.ordinal = ordinal;
  entry.embedding.id = fmt::format("r{}", ordinal);
  return entry;
}

Entry rejected(uint64_t ordinal, bool failure) {
  Entry bad = entry(ordinal);
  bad.rejected = "bad";
  bad.failure = failure;
  bad.ready = true;
  return bad;
}

const std::vector<float> kTwoRows{1, 2, 3, 4};

class OrderedSinkTest : public testing::Test {
 protected:
  FakeOutput output_;
  OrderedSink sink_{output_, {.d_model = 2}};
};

TEST_F(OrderedSinkTest, RecordsLeaveInTheOrderOfTheInput) {
  for (const uint64_t ordinal : {0, 3, 7}) sink_.announce(entry(ordinal));
  EXPECT_EQ(sink_.id_of(3), "r3");
  sink_.complete(7, kTwoRows);
  sink_.complete(3, kTwoRows);
  EXPECT_THAT(output_.lines, IsEmpty());
  sink_.complete(0, std::vector<float>{9, 8});
  EXPECT_THAT(output_.lines,
              ElementsAre("r0 1 rows: 9 8", "r3 2 rows: 1 2 3 4", "r7 2 rows: 1 2 3 4"));
  EXPECT_EQ(sink_.id_of(3), "");  // gone
  EXPECT_EQ(sink_.counts().embedded, 3U);
}

TEST_F(OrderedSinkTest, RejectedAndSharedRecordsWaitForTheirTurn) {
  sink_.announce(entry(0));
  sink_.announce(rejected(1, true));
  sink_.announce(rejected(2, false));
  Entry same = entry(3);
  same.same_as = 0;
  same.ready = true;
  sink_.announce(std::move(same));
  EXPECT_THAT(output_.lines, IsEmpty());
  sink_.complete(0, kTwoRows);
  EXPECT_THAT(output_.lines,
              ElementsAre("r0 2 rows: 1 2 3 4", "r1 rejected: bad", "r2 rejected: bad", "r3 as 0"));
  const SinkCounts counts = sink_.counts();
  EXPECT_EQ(counts.embedded, 2U);
  EXPECT_EQ(counts.same, 1U);
  EXPECT_EQ(counts.rejected, 2U);
  EXPECT_EQ(counts.failed, 1U);
}

TEST_F(OrderedSinkTest, MaskedRowsAreZeroOrLeftOut) {
  Entry masked = entry(0);
  masked.mask = {0, 1, 0, 1};
  sink_.announce(masked);
  sink_.complete(0, kTwoRows);
  EXPECT_THAT(output_.lines, ElementsAre("r0 4 rows: 0 0 1 2 0 0 3 4"));

  FakeOutput dropped;
  OrderedSink dropping(dropped, {.d_model = 2, .drop_masked_rows = true});
  dropping.announce(masked);
  dropping.complete(0, kTwoRows);
  EXPECT_THAT(dropped.lines, ElementsAre("r0 2 rows: 1 2 3 4"));

  FakeOutput vectors;
  OrderedSink pooling(vectors, {.d_model = 2, .pooled = true});
  pooling.announce(masked);
  pooling.complete(0, std::vector<float>{5, 6});
  EXPECT_THAT(vectors.lines, ElementsAre("r0 1 rows: 5 6"));
}

// NaN is never written; nor is it by way of an equal sequence.
TEST_F(OrderedSinkTest, NumbersThatAreNoneAreRejected) {
  std::vector<std::string> told;
  OrderedSink sink(output_, {.d_model = 2, .on_reject = [&](const Rejection& rejection) {
                               told.push_back(rejection.id);
                             }});
  sink.announce(entry(0));
  Entry same = entry(1);
  same.same_as = 0;
  same.ready = true;
  sink.announce(std::move(same));
  sink.complete(0, std::vector<float>{1, std::numeric_limits<float>::quiet_NaN()});
  EXPECT_THAT(output_.lines, ElementsAre(HasSubstr("r0 rejected: the model gives NaN or Inf"),
                                         HasSubstr("r1 rejected: the model gives NaN or Inf")));
  EXPECT_EQ(sink.counts().failed, 2U);
  EXPECT_THAT(told, ElementsAre("r0", "r1"));
}

}  // namespace
}  // namespace quintet
