// Searches over a hash as language model against what the reference's generate() found, and what no
// reference is needed for: bounds, stop strings, refusals.
#include "generation/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "core/error.h"
#include "core/json.h"
#include "generation/fake_language_model.h"
#include "generation/warpers.h"

namespace quintet {
namespace {

using ::testing::ElementsAre;
using testing::FakeLanguageModel;
using ::testing::HasSubstr;

struct ReferenceCases {
  std::vector<std::string> tokens;
  nlohmann::json cases;
};

const ReferenceCases& reference() {
  static const ReferenceCases all = [] {
    auto json = parse_json_file(std::filesystem::path(QUINTET_FIXTURES) / "generation/cases.json");
    return ReferenceCases{json["tokens"].get<std::vector<std::string>>(), json["cases"]};
  }();
  return all;
}

std::string decode(std::span<const int32_t> ids) {
  std::string text;
  for (const int32_t id : ids) {
    if (id > 1) text += reference().tokens.at(static_cast<size_t>(id));
  }
  return text;
}

struct Case {
  explicit Case(const nlohmann::json& json) {
    const auto n_tokens = static_cast<int64_t>(reference().tokens.size());
    model = {json["seed"].get<uint64_t>(), json["order"].get<size_t>(), n_tokens};
    config.eos_token_id = {1};
    config.pad_token_id = 0;
    apply_generation_options(config, json["options"], "case");
    check_generation_config(config, n_tokens);
    input.prompt = json["prompt"].get<std::vector<int32_t>>();
    input.padded_prompt_length =
        static_cast<int64_t>(input.prompt.size()) + json.value("masked", int64_t{0});
    input.encoder_input =
        json.contains("encoder") ? json["encoder"].get<std::vector<int32_t>>() : input.prompt;
    input.vocab_size = n_tokens;
    input.decode = decode;
  }
  FakeLanguageModel model;
  GenerationConfig config;
  SearchInput input;
};

TEST(Search, FindsWhatTheReferenceFinds) {
  int n_checked = 0;
  for (const auto& json : reference().cases) {
    if (!json.contains("sequences")) continue;
    SCOPED_TRACE(json.dump());
    Case one(json);
    const auto search = make_search(one.config, one.input);
    const auto results = testing::run(one.model, *search, one.input.prompt);
    const auto& expected = json["sequences"];
    ASSERT_EQ(results.size(), expected.size());
    for (size_t i = 0; i < results.size(); ++i) {
      EXPECT_EQ(results[i].ids, expected[i].get<std::vector<int32_t>>()) << i;
      EXPECT_EQ(results[i].has_score, json.contains("scores"));
      if (!results[i].has_score) continue;
      const double score = json["scores"][i].get<double>();
      EXPECT_NEAR(results[i].score, score, 2e-6 * std::max(1.0, std::abs(score))) << i;
    }
    ++n_checked;
  }
  EXPECT_GT(n_checked, 120);
}

TEST(Search, SamplesFromTheDistributionOfTheReference) {
  int n_checked = 0;
  for (const auto& json : reference().cases) {
    if (!json.contains("probabilities")) continue;
    SCOPED_TRACE(json.dump());
    Case one(json);
    one.config.max_new_tokens = 1;
    const auto search = make_search(one.config, one.input);
    const auto answers = testing::answer(one.model, search->request(), {one.input.prompt});
    const auto choices = warp(one.config, {answers[0].ids, answers[0].values});
    std::map<int32_t, double> found;
    for (const auto& choice : choices) found[choice.token] = choice.probability;
    EXPECT_EQ(found.size(), json["probabilities"].size());
    for (const auto& pair : json["probabilities"]) {
      EXPECT_NEAR(found[pair[0].get<int32_t>()], pair[1].get<double>(), 1e-6) << pair[0];
    }
    ++n_checked;
  }
  EXPECT_GT(n_checked, 40);
}

TEST(Search, KeepsWithinTheRowsAndTokensThatItNames) {
  for (const auto& json : reference().cases) {
    SCOPED_TRACE(json.dump());
    Case one(json);
    one.config.num_return_sequences = std::min<int64_t>(one.config.num_beams, 2);
    const auto search = make_search(one.config, one.input);
    std::vector<std::vector<int32_t>> rows = {one.input.prompt};
    int64_t n_steps = 1;
    for (; testing::step(one.model, *search, rows); ++n_steps) {
      ASSERT_LE(static_cast<int64_t>(rows.size()), search->max_rows());
      for (const auto& edit : search->request().edits) {
        ASSERT_LT(edit.row, static_cast<int32_t>(rows.size()));
        ASSERT_LT(edit.token, one.input.vocab_size);
      }
    }
    EXPECT_LE(n_steps, search->max_new_tokens());
  }
}

SearchInput input_of(std::vector<int32_t> prompt, int64_t vocab_size = 28) {
  SearchInput input;
  input.prompt = std::move(prompt);
  input.vocab_size = vocab_size;
  input.decode = decode;
  return input;
}

std::string error_of(const GenerationConfig& config, const SearchInput& input) {
  try {
    make_search(config, input);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

TEST(Search, DefaultLengthIsTwentyNewTokensWithinTheModelsPositions) {
  const GenerationConfig config;
  auto input = input_of({2, 3, 4});
  EXPECT_EQ(make_search(config, input)->max_new_tokens(), 20);
  input.max_positions = 16;
  EXPECT_EQ(make_search(config, input)->max_new_tokens(), 13);
  input.padded_prompt_length = 10;
  EXPECT_EQ(make_search(config, input)->max_new_tokens(), 6);
}

TEST(Search, RefusesAPromptThatLeavesNoRoom) {
  GenerationConfig config;
  config.max_length = 3;
  EXPECT_THAT(error_of(config, input_of({2, 3, 4})), HasSubstr("3 tokens and max_length is 3"));
  EXPECT_EQ(error_of(config, input_of({2, 3})), "none");
  EXPECT_THAT(error_of(config, input_of({})), HasSubstr("no token to start from"));
  config.stop_strings = {"x"};
  auto input = input_of({2, 3});
  input.decode = nullptr;
  EXPECT_THAT(error_of(config, input), HasSubstr("stop_strings"));
}

TEST(Search, StopsAfterTheTokenThatCompletesAStopString) {
  GenerationConfig config;
  config.stop_strings = {"bca"};
  config.max_new_tokens = 10;
  const auto token = [](const std::string& text) {
    const auto& tokens = reference().tokens;
    return static_cast<int32_t>(std::find(tokens.begin(), tokens.end(), text) - tokens.begin());
  };
  // "a" "b" | "c" "ab": the string began in the prompt and ends within the last token.
  const auto search = make_search(config, input_of({token("a"), token("b")}));
  const std::vector<float> value = {0.0F};
  const std::vector<int32_t> first = {token("c")};
  const std::vector<int32_t> second = {token("ab")};
  EXPECT_EQ(search->advance(std::vector<Candidates>{{first, value}}).size(), 1U);
  EXPECT_EQ(search->advance(std::vector<Candidates>{{second, value}}).size(), 0U);
  EXPECT_THAT(search->results().front().ids, ElementsAre(token("c"), token("ab")));
  // One that stands before the last token does not stop.
  const auto other = make_search(config, input_of({token("bc"), token("a")}));
  EXPECT_EQ(other->advance(std::vector<Candidates>{{first, value}}).size(), 1U);
}

TEST(Search, EditsOfForcedTokensReplaceTheEarlierOnes) {
  GenerationConfig config;
  config.repetition_penalty = 2.0;
  config.forced_bos_token_id = 5;
  config.eos_token_id = {1, 4000};  // one outside the vocabulary is not edited
  config.min_new_tokens = 3;
  const auto search = make_search(config, input_of({0}));
  const auto edits = search->request().edits;
  ASSERT_EQ(edits.size(), 2U);
  EXPECT_EQ(edits[0].kind, LogitEdit::Kind::kFillRow);
  EXPECT_EQ(edits[1].token, 5);
}

TEST(Search, BeamsSurviveLogitsThatAreNotNumbers) {
  GenerationConfig config;
  config.num_beams = 3;
  config.max_new_tokens = 4;
  const auto search = make_search(config, input_of({2}));
  const std::vector<float> values(6, std::numeric_limits<float>::quiet_NaN());
  const std::vector<int32_t> ids = {3, 4, 5, 6, 7, 8};
  int n_steps = 0;
  for (size_t n_rows = 1; n_rows > 0; ++n_steps) {
    n_rows = search->advance(std::vector<Candidates>(n_rows, {ids, values})).size();
  }
  EXPECT_LE(n_steps, 4);
  EXPECT_EQ(search->results().size(), 1U);
}

}  // namespace
}  // namespace quintet
