// Values of model folders and callers; what is refused, and by which words.
#include "generation/generation_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.h"

namespace quintet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class GenerationFolder : public ::testing::Test {
 protected:
  GenerationFolder()
      : folder_(std::filesystem::path(::testing::TempDir()) /
                ("generation_" +
                 std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()))) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~GenerationFolder() override { std::filesystem::remove_all(folder_); }

  void write(const char* name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
  }
  GenerationConfig load() const { return load_generation_config(folder_); }
  std::string error() const {
    try {
      load();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kFile);
      return error.what();
    }
    return "none";
  }

 private:
  std::filesystem::path folder_;
};

std::string option_error(const std::string& json) {
  GenerationConfig config;
  try {
    apply_generation_options(config, nlohmann::json::parse(json), "g.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    return error.what();
  }
  return "none";
}

TEST_F(GenerationFolder, GenerationConfigComesBeforeConfig) {
  write("generation_config.json",
        R"({"decoder_start_token_id": 3, "pad_token_id": 0, "num_beams": 4, "max_length": null})");
  write("config.json",
        R"({"decoder_start_token_id": 0, "eos_token_id": [1, 2], "num_beams": 7, "d_model": 8})");
  const auto config = load();
  EXPECT_EQ(decoder_start_token(config), 3);
  EXPECT_EQ(config.num_beams, 4);
  EXPECT_THAT(config.eos_token_id, ElementsAre(1, 2));  // config.json fills in special tokens
  EXPECT_FALSE(config.max_length);
}

TEST_F(GenerationFolder, ConfigAloneMayHoldLegacyOptions) {
  write("config.json", R"({"eos_token_id": 1, "max_length": 50, "early_stopping": true,
      "use_cache": false, "output_attentions": true, "task_specific_params": {"x": {}}})");
  const auto config = load();
  EXPECT_EQ(config.max_length, 50);
  EXPECT_EQ(config.early_stopping, EarlyStopping::kTrue);
}

TEST_F(GenerationFolder, NoStartTokenAnywhereIsAnErrorAndNoGuess) {
  write("config.json", R"({"pad_token_id": 0, "eos_token_id": 1})");
  EXPECT_THROW(decoder_start_token(load()), Error);
  write("generation_config.json", R"({"bos_token_id": 5})");
  EXPECT_EQ(decoder_start_token(load()), 5);  // as the reference does
}

TEST_F(GenerationFolder, ANameThatWouldChangeTheOutputIsRefused) {
  write("generation_config.json", R"({"penalty_alpha": 0.6})");
  EXPECT_THAT(error(), HasSubstr("'penalty_alpha' is 0.6"));
  write("generation_config.json", R"({"penalty_alpha": 0.0, "num_beam_groups": 1,
      "diversity_penalty": 0.0, "cache_implementation": "static", "chat_format": "x",
      "transformers_version": "5.0.0", "_from_model_config": true, "sequence_bias": null})");
  EXPECT_EQ(error(), "none");
  write("generation_config.json", R"({"top_p": 1.5})");
  EXPECT_THAT(error(), HasSubstr("'top_p' is 1.5, expected a number from 0 to 1"));
  write("generation_config.json", R"([1])");
  EXPECT_THAT(error(), HasSubstr("expected a JSON object"));
}

TEST_F(GenerationFolder, NegativeSpecialTokensAreNone) {
  write("generation_config.json",
        R"({"pad_token_id": -1, "eos_token_id": -1, "bos_token_id": -1})");
  const auto config = load();
  EXPECT_FALSE(config.pad_token_id);
  EXPECT_FALSE(config.bos_token_id);
  EXPECT_THAT(config.eos_token_id, IsEmpty());
}

TEST(GenerationOptions, AreReadByTheirNames) {
  GenerationConfig config;
  config.eos_token_id = {1};
  apply_generation_options(config, nlohmann::json::parse(R"({
      "max_new_tokens": 9, "min_new_tokens": 2, "max_length": 70, "min_length": 3, "num_beams": 5,
      "num_return_sequences": 2, "do_sample": true, "temperature": 1, "top_k": 0, "top_p": 0.5,
      "min_p": 0.1, "typical_p": 0.4, "repetition_penalty": 1.5, "encoder_repetition_penalty": 2,
      "no_repeat_ngram_size": 3, "encoder_no_repeat_ngram_size": 4, "length_penalty": -1.5,
      "early_stopping": "never", "bad_words_ids": [[1], [2, 3]], "forced_bos_token_id": 4,
      "forced_eos_token_id": 5, "suppress_tokens": [6], "begin_suppress_tokens": [7, 8],
      "stop_strings": "x", "bos_token_id": 9, "eos_token_id": null, "pad_token_id": 10,
      "decoder_start_token_id": 11, "seed": 18446744073709551615})"),
                           "");
  EXPECT_EQ(config.max_new_tokens, 9);
  EXPECT_EQ(config.min_new_tokens, 2);
  EXPECT_EQ(config.max_length, 70);
  EXPECT_EQ(config.min_length, 3);
  EXPECT_EQ(config.num_beams, 5);
  EXPECT_EQ(config.num_return_sequences, 2);
  EXPECT_TRUE(config.do_sample);
  EXPECT_EQ(config.temperature, 1.0);
  EXPECT_EQ(config.top_k, 0);
  EXPECT_EQ(config.top_p, 0.5);
  EXPECT_EQ(config.min_p, 0.1);
  EXPECT_EQ(config.typical_p, 0.4);
  EXPECT_EQ(config.repetition_penalty, 1.5);
  EXPECT_EQ(config.encoder_repetition_penalty, 2.0);
  EXPECT_EQ(config.no_repeat_ngram_size, 3);
  EXPECT_EQ(config.encoder_no_repeat_ngram_size, 4);
  EXPECT_EQ(config.length_penalty, -1.5);
  EXPECT_EQ(config.early_stopping, EarlyStopping::kNever);
  EXPECT_THAT(config.bad_words_ids, ElementsAre(ElementsAre(1), ElementsAre(2, 3)));
  EXPECT_EQ(config.forced_bos_token_id, 4);
  EXPECT_THAT(config.forced_eos_token_id, ElementsAre(5));
  EXPECT_THAT(config.suppress_tokens, ElementsAre(6));
  EXPECT_THAT(config.begin_suppress_tokens, ElementsAre(7, 8));
  EXPECT_THAT(config.stop_strings, ElementsAre("x"));
  EXPECT_EQ(config.bos_token_id, 9);
  EXPECT_THAT(config.eos_token_id, ElementsAre(1));  // null leaves it
  EXPECT_EQ(config.pad_token_id, 10);
  EXPECT_EQ(config.decoder_start_token_id, 11);
  EXPECT_EQ(config.seed, ~uint64_t{0});
}

TEST(GenerationOptions, WhatIsNotDoneIsNamed) {
  for (const char* option :
       {R"("max_time": 3)", R"("use_cache": false)", R"("guidance_scale": 2.0)",
        R"("output_scores": true)", R"("constraints": [])", R"("num_beam_groups": 2)",
        R"("epsilon_cutoff": 0.1)", R"("prefix_allowed_tokens_fn": 1)", R"("assistant_model": "x")",
        R"("renormalize_logits": true)", R"("prompt_lookup_num_tokens": 3)",
        R"("decoder_input_ids": [1])", R"("temprature": 0.5)"}) {
    const std::string text = option;
    const auto name = text.substr(1, text.find('"', 1) - 1);
    EXPECT_THAT(option_error("{" + text + "}"), HasSubstr("g.json: '" + name + "' is"));
  }
  EXPECT_EQ(option_error(R"({"use_cache": true, "guidance_scale": 1, "num_beam_groups": 1,
      "max_time": null, "transformers_version": "5.1"})"),
            "none");
}

TEST(GenerationOptions, WrongTypesAndRangesAreNamed) {
  for (const char* option : {R"("max_new_tokens": 0)",
                             R"("max_new_tokens": 2.5)",
                             R"("max_length": 9000000000)",
                             R"("max_length": 18446744073709551615)",
                             R"("num_beams": "4")",
                             R"("num_beams": 0)",
                             R"("num_return_sequences": 5000)",
                             R"("do_sample": 1)",
                             R"("temperature": 0)",
                             R"("temperature": 1e-60)",
                             R"("top_k": -1)",
                             R"("top_p": -0.1)",
                             R"("min_p": 2)",
                             R"("typical_p": 0)",
                             R"("repetition_penalty": -1)",
                             R"("length_penalty": 1e9)",
                             R"("early_stopping": "always")",
                             R"("bad_words_ids": [[]])",
                             R"("bad_words_ids": [3])",
                             R"("forced_bos_token_id": [3])",
                             R"("suppress_tokens": 3)",
                             R"("stop_strings": [""])",
                             R"("stop_strings": {"a": 1})",
                             R"("eos_token_id": "1")",
                             R"("eos_token_id": [1.5])",
                             R"("seed": -1)"}) {
    EXPECT_THAT(option_error("{" + std::string(option) + "}"), HasSubstr(", expected ")) << option;
  }
  EXPECT_THAT(option_error("[1]"), HasSubstr("array where an object"));
}

TEST(GenerationOptions, AnErrorLeavesTheConfigAsItWas) {
  GenerationConfig config;
  const auto options = nlohmann::json::parse(R"({"num_beams": 5, "top_k": -1})");
  EXPECT_THROW(apply_generation_options(config, options, ""), Error);
  EXPECT_EQ(config.num_beams, 1);
}

std::string check_error(const std::string& json, int64_t vocab_size = 32) {
  GenerationConfig config;
  apply_generation_options(config, nlohmann::json::parse(json), "");
  try {
    check_generation_config(config, vocab_size);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    return error.what();
  }
  return "none";
}

TEST(CheckGenerationConfig, FindsWhatDoesNotGoTogether) {
  EXPECT_THAT(check_error(R"({"num_return_sequences": 2})"), HasSubstr("greedy"));
  EXPECT_EQ(check_error(R"({"num_return_sequences": 2, "do_sample": true})"), "none");
  EXPECT_THAT(check_error(R"({"num_return_sequences": 4, "num_beams": 3})"),
              HasSubstr("num_return_sequences is 4 and num_beams 3"));
  EXPECT_EQ(check_error(R"({"num_beams": 3, "do_sample": true})"), "none");
  EXPECT_THAT(check_error(R"({"min_new_tokens": 4, "max_new_tokens": 3})"),
              HasSubstr("min_new_tokens is 4"));
  EXPECT_THAT(check_error(R"({"min_length": 4, "max_length": 3})"), HasSubstr("min_length is 4"));
  EXPECT_EQ(check_error(R"({"min_length": 4, "max_length": 3, "max_new_tokens": 9})"), "none");
  EXPECT_THAT(check_error(R"({"bad_words_ids": [[3, 32]]})"), HasSubstr("token 32"));
  EXPECT_THAT(check_error(R"({"forced_bos_token_id": 99})"), HasSubstr("forced_bos_token_id"));
  EXPECT_THAT(check_error(R"({"forced_eos_token_id": [1, 99]})"), HasSubstr("token 99"));
  EXPECT_THAT(check_error(R"({"decoder_start_token_id": 32})"), HasSubstr("decoder_start"));
  EXPECT_THAT(check_error(R"({"forced_bos_token_id": 3, "suppress_tokens": [2, 3]})"),
              HasSubstr("also in suppress_tokens"));
  EXPECT_EQ(check_error(R"({"forced_eos_token_id": [1, 3], "suppress_tokens": [3]})"), "none");
  EXPECT_EQ(check_error(R"({"eos_token_id": 50256, "pad_token_id": 50256})"), "none");
  EXPECT_THAT(check_error(R"({"num_beams": 2, "eos_token_id": [0, 1, 2]})", 3),
              HasSubstr("leave no token"));
}

TEST(ResolvedMaxLength, NewTokensWinOverLength) {
  GenerationConfig config;
  EXPECT_EQ(resolved_max_length(config, 7, 0), 27);
  EXPECT_EQ(resolved_max_length(config, 7, 20), 20);
  config.max_length = 15;
  EXPECT_EQ(resolved_max_length(config, 7, 10), 15);
  config.max_new_tokens = 3;
  EXPECT_EQ(resolved_max_length(config, 7, 0), 10);
}

}  // namespace
}  // namespace quintet
