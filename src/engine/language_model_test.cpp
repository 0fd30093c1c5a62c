// The public classes that generate: what they compute is tested with the models; here that
// splitting them changes no bit and no byte of memory stays behind, and what they refuse.
#include "quintet/language_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "backends/registry.h"

namespace quintet {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string fixture(const std::string& name) {
  return (std::filesystem::path(QUINTET_FIXTURES) / "decoders" / name).string();
}

template <typename Call>
std::string problem_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

const PretrainedLanguageModel::Ids kSources = {{3, 17, 9, 1}, {5, 1}, {2, 7, 14, 4, 4, 1}};
const PretrainedLanguageModel::Ids kTargets = {{0, 6, 5}, {0}, {0, 2, 3, 4, 5, 6, 7}};

std::vector<std::vector<float>> values_of(const std::vector<OutputRows>& outputs) {
  std::vector<std::vector<float>> values;
  for (const OutputRows& rows : outputs) values.push_back(rows.values);
  return values;
}

size_t bytes_of(const PretrainedLanguageModel& model) {
  size_t bytes = 0;
  for (const DeviceMemory& memory : model.memory()) bytes += memory.used;
  return bytes;
}

TEST(LanguageModel, SplittingT5ChangesNoBitAndNoByteStays) {
  auto model = T5ForConditionalGeneration::from_pretrained(fixture("t5"));
  EXPECT_EQ(model.n_encoder_layers(), 1);
  EXPECT_EQ(model.n_layers(), 2);
  const size_t before = bytes_of(model);
  const auto logits = values_of(model.forward(kSources, {}, kTargets));
  const auto tokens = model.generate(kSources, {}, {.max_new_tokens = 9, .num_beams = 3});
  // The encoder on one device, the decoder over it and another.
  model.parallelize({{"reference:0", {0}}}, {{"reference:0", {0}}, {"cpu:0", {1}}});
  EXPECT_TRUE(model.is_parallel());
  EXPECT_EQ(model.memory().size(), 2U);
  for (const DeviceMemory& memory : model.memory()) {
    EXPECT_GT(memory.used, 0U);
    EXPECT_LT(memory.used, before);
  }
  const auto split = model.generate(kSources, {}, {.max_new_tokens = 9, .num_beams = 3});
  for (size_t i = 0; i < tokens.size(); ++i) EXPECT_EQ(split[i][0].ids, tokens[i][0].ids);
  model.parallelize({{"cpu:0", {0}}}, {{"cpu:0", {0, 1}}});
  EXPECT_FALSE(model.is_parallel());
  EXPECT_EQ(bytes_of(model), before);
  EXPECT_EQ(values_of(model.forward(kSources, {}, kTargets)), logits);
  // One record at a time: the same bits.
  for (size_t i = 0; i < kSources.size(); ++i) {
    EXPECT_EQ(values_of(model.forward({kSources[i]}, {}, {kTargets[i]})).front(), logits[i]);
  }
}

TEST(LanguageModel, DeparallelizeGoesBackToTheFirstDevice) {
  auto model = GPT2LMHeadModel::from_pretrained(fixture("gpt2"));
  const size_t before = bytes_of(model);
  const auto logits = values_of(model.forward(kSources));
  model.parallelize({{"cpu:0", {0}}, {"reference:0", {1}}});
  EXPECT_TRUE(model.is_parallel());
  model.deparallelize();
  EXPECT_EQ(model.device_map(), (DeviceMap{{"cpu:0", {0, 1}}}));
  EXPECT_EQ(bytes_of(model), before);
  EXPECT_EQ(values_of(model.forward(kSources)), logits);
}

// Positions count masked ids in forward(), and not in generate().
TEST(LanguageModel, Gpt2BehindPadding) {
  auto model = GPT2LMHeadModel::from_pretrained(fixture("gpt2"));
  const auto rows = model.forward({{0, 0, 3, 4}}, {{0, 0, 1, 1}});
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].n_rows, 4);
  EXPECT_THAT(std::vector<float>(rows[0].values.begin(), rows[0].values.begin() + 2 * 24),
              testing::Each(0.0F));
  EXPECT_NE(rows[0].values[2 * 24], model.forward({{3, 4}})[0].values[0]);
  EXPECT_EQ(model.generate({{0, 0, 3, 4}}, {{0, 0, 1, 1}}, {.max_new_tokens = 6})[0][0].ids,
            model.generate({{3, 4}}, {}, {.max_new_tokens = 6})[0][0].ids);
}

TEST(LanguageModel, WithoutHeadTheRowsAreHiddenStates) {
  auto model = GPT2Model::from_pretrained(fixture("gpt2"));
  EXPECT_EQ(model.forward({{3, 4, 5}})[0].width, model.d_model());
  auto t5 = T5Model::from_pretrained(fixture("t5"));
  const auto rows = t5.forward({{3, 4, 1}}, {}, {{0, 7}});
  EXPECT_EQ(rows[0].n_rows, 2);
  EXPECT_EQ(rows[0].width, t5.d_model());
}

TEST(LanguageModel, Refusals) {
  auto model = T5ForConditionalGeneration::from_pretrained(fixture("t5"));
  EXPECT_THAT(problem_of([&] {
                model.parallelize({{"cpu:0", {0}}}, {{"cpu:0", {0, 0, 2}}});
              }),
              AllOf(HasSubstr("decoder"), HasSubstr("1"), HasSubstr("2")));
  EXPECT_THAT(problem_of([&] {
                model.parallelize({}, {{"cpu:0", {0, 1}}});
              }),
              HasSubstr("encoder"));
  EXPECT_THAT(problem_of([&] {
                model.generate({{3, 1}, {3, 24}});
              }),
              AllOf(HasSubstr("sequence 1"), HasSubstr("24")));
  EXPECT_THAT(problem_of([&] {
                model.generate({{3, 1}}, {}, {.more = R"({"num_beam": 3})"});
              }),
              HasSubstr("num_beam"));
  EXPECT_THAT(problem_of([&] { model.forward({{3, 1}}, {}, {}); }), HasSubstr("decoder_input_ids"));
  EXPECT_THAT(problem_of([] { MT5Model::from_pretrained(fixture("t5")); }), HasSubstr("mt5"));
  EXPECT_THAT(problem_of([] { T5Model::from_pretrained(fixture("gpt2")); }), HasSubstr("gpt2"));
  // It is as it was.
  EXPECT_EQ(model.generate({{3, 1}}, {}, {.max_new_tokens = 3}).size(), 1U);
}

}  // namespace
}  // namespace quintet
