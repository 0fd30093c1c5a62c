// Random numbers against the published vectors of Philox, and draws against their distributions.
#include "generation/sampling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "core/error.h"
#include "generation/fake_language_model.h"
#include "generation/philox.h"

namespace quintet {
namespace {

using ::testing::ElementsAre;
using testing::FakeLanguageModel;

TEST(Philox, GivesThePublishedVectors) {
  EXPECT_THAT(philox4x32({0, 0, 0, 0}, {0, 0}),
              ElementsAre(0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8));
  constexpr uint32_t kOnes = 0xffffffff;
  EXPECT_THAT(philox4x32({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
              ElementsAre(0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd));
  EXPECT_THAT(
      philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
      ElementsAre(0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1));
}

TEST(Philox, EveryPartOfADrawCounts) {
  const Draw draw{.seed = 1, .ordinal = 2, .lane = 3, .step = 4};
  std::set<double> drawn = {uniform(draw)};
  for (Draw other : {Draw{2, 2, 3, 4}, Draw{1ULL << 40 | 1, 2, 3, 4}, Draw{1, 3, 3, 4},
                     Draw{1, 1ULL << 40 | 2, 3, 4}, Draw{1, 2, 4, 4}, Draw{1, 2, 3, 5}}) {
    drawn.insert(uniform(other));
  }
  EXPECT_EQ(drawn.size(), 7U);
  EXPECT_EQ(uniform(draw), uniform(draw));
}

TEST(Sampling, ChoosesWhereTheRunningSumPasses) {
  const std::vector<Choice> choices = {{7, 0, 0.5}, {3, 0, 0.25}, {9, 0, 0.25}};
  EXPECT_EQ(choose(choices, 0.0), 7);
  EXPECT_EQ(choose(choices, 0.499), 7);
  EXPECT_EQ(choose(choices, 0.5), 3);
  EXPECT_EQ(choose(choices, 0.75), 9);
  EXPECT_EQ(choose({{7, 0, 0.5}, {3, 0, 0.4999}}, 0.99999), 3);
}

FakeLanguageModel small_model() { return {.seed = 17, .order = 1, .vocab_size = 12}; }

SearchInput input_of(uint64_t ordinal) {
  SearchInput input;
  input.ordinal = ordinal;
  input.prompt = {2, 3};
  input.vocab_size = small_model().vocab_size;
  return input;
}

GenerationConfig sampling_config() {
  GenerationConfig config;
  config.do_sample = true;
  config.seed = 99;
  config.max_new_tokens = 6;
  return config;
}

// 99.99 % of chi-square values with n degrees of freedom lie below (Wilson and Hilferty).
double chi_square_bound(double n) {
  const double root = 1 - 2 / (9 * n) + 3.719 * std::sqrt(2 / (9 * n));
  return n * root * root * root;
}

TEST(Sampling, DrawsFollowTheDistribution) {
  auto config = sampling_config();
  config.max_new_tokens = 1;
  config.temperature = 2.0;
  config.num_return_sequences = 4;
  const auto model = small_model();
  const int n_records = 5000;
  std::map<int32_t, double> counts;
  for (int record = 0; record < n_records; ++record) {
    const auto search = make_search(config, input_of(static_cast<uint64_t>(record)));
    for (const auto& sample : testing::run(model, *search, {2, 3})) ++counts[sample.ids.front()];
  }
  const auto search = make_search(config, input_of(0));
  const auto answers = testing::answer(model, search->request(), {{2, 3}});
  const auto choices = warp(config, {answers[0].ids, answers[0].values});
  double chi_square = 0;
  for (const auto& choice : choices) {
    const double expected = choice.probability * 4 * n_records;
    chi_square += std::pow(counts[choice.token] - expected, 2) / expected;
  }
  ASSERT_EQ(choices.size(), 12U);
  EXPECT_LT(chi_square, chi_square_bound(11));
}

TEST(Sampling, ARecordsDrawsDependOnItsOwnNumberOnly) {
  const auto config = sampling_config();
  const auto model = small_model();
  const auto draw = [&](uint64_t ordinal) {
    const auto search = make_search(config, input_of(ordinal));
    return testing::run(model, *search, {2, 3}).front().ids;
  };
  std::vector<std::vector<int32_t>> forwards;
  for (uint64_t ordinal = 0; ordinal < 20; ++ordinal) forwards.push_back(draw(ordinal));
  for (uint64_t ordinal = 20; ordinal-- > 0;) EXPECT_EQ(draw(ordinal), forwards[ordinal]);
  EXPECT_GT(std::set(forwards.begin(), forwards.end()).size(), 15U);
}

TEST(Sampling, ASampleIsTheSameBesideMoreSamples) {
  auto config = sampling_config();
  config.eos_token_id = {4, 5};  // so that samples end at different steps
  const auto model = small_model();
  const auto few = testing::run(model, *make_search(config, input_of(8)), {2, 3});
  config.num_return_sequences = 9;
  const auto many = testing::run(model, *make_search(config, input_of(8)), {2, 3});
  ASSERT_EQ(many.size(), 9U);
  EXPECT_EQ(many.front().ids, few.front().ids);
  std::set<size_t> lengths;
  for (const auto& sample : many) lengths.insert(sample.ids.size());
  EXPECT_GT(lengths.size(), 1U);
}

TEST(Sampling, SaysWhereNoTokenIsLeft) {
  auto config = sampling_config();
  const std::vector<int32_t> ids = {0, 1};
  for (const float value :
       {-std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    const std::vector<float> values = {value, value};
    for (config.num_beams = 1; config.num_beams < 3; ++config.num_beams) {
      const auto search = make_search(config, input_of(0));
      EXPECT_THROW(search->advance(std::vector<Candidates>{{ids, values}}), Error);
    }
  }
}

// A row without a choice ends its beam; the others fill its place.
TEST(Sampling, ABeamWithoutAChoiceGivesWay) {
  auto config = sampling_config();
  config.num_beams = 3;
  const auto search = make_search(config, input_of(0));
  const std::vector<int32_t> ids = {7, 3, 5};
  const std::vector<float> values = {-0.5F, -1.2F, -2.3F};
  const float never = -std::numeric_limits<float>::infinity();
  const std::vector<float> none = {never, never, never};
  ASSERT_EQ(search->advance(std::vector<Candidates>{{ids, values}}).size(), 3U);
  const auto one_left =
      search->advance(std::vector<Candidates>{{ids, none}, {ids, values}, {ids, none}});
  ASSERT_EQ(one_left.size(), 3U);
  for (const auto& row : one_left) EXPECT_EQ(row.parent, 1);
  const std::vector<float> single = {-0.5F, never, never};
  const auto fewer =
      search->advance(std::vector<Candidates>{{ids, none}, {ids, single}, {ids, none}});
  ASSERT_EQ(fewer.size(), 1U);
  for (const auto& edit : search->request().edits) EXPECT_EQ(edit.row, 0);
  EXPECT_EQ(search->advance(std::vector<Candidates>{{ids, values}}).size(), 3U);
}

// The first step of two sampled beams takes four tokens without replacement; the best two go on.
TEST(Sampling, BeamsDrawWithoutReplacement) {
  auto config = sampling_config();
  config.num_beams = 2;
  config.max_new_tokens = 2;
  config.top_k = 5;
  const std::vector<float> values = {-0.5F, -1.2F, -2.3F, -2.9F, -3.5F};
  const std::vector<int32_t> ids = {7, 3, 5, 11, 0};
  // By theory, the probability that a token is among the four is 1 - P(it is the one left out).
  double total = 0;
  for (const float value : values) total += std::exp(value);
  const auto left_out = [&](size_t last) {
    double sum = 0;
    std::vector<size_t> order = {0, 1, 2, 3, 4};
    do {
      if (order.back() != last) continue;
      double probability = 1;
      double rest = total;
      for (const size_t i : order) {
        probability *= std::exp(values[i]) / rest;
        rest -= std::exp(values[i]);
        if (i == order[3]) break;
      }
      sum += probability;
    } while (std::next_permutation(order.begin(), order.end()));
    return sum;
  };
  // The best two go on: token 3 is one of them unless it was left out.
  const int n = 20000;
  int with_3 = 0;
  for (int record = 0; record < n; ++record) {
    const auto search = make_search(config, input_of(static_cast<uint64_t>(record)));
    const auto next = search->advance(std::vector<Candidates>{{ids, values}});
    ASSERT_EQ(next.size(), 2U);
    EXPECT_NE(next[0].token, next[1].token);
    with_3 += next[0].token == 3 || next[1].token == 3 ? 1 : 0;
  }
  const double expected = 1 - left_out(1);
  const double deviation = std::sqrt(expected * (1 - expected) / n);
  EXPECT_NEAR(with_3 / static_cast<double>(n), expected, 4 * deviation);
}

}  // namespace
}  // namespace quintet
