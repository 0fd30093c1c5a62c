// generate and score from the command line: the original's tokens, equal lines however the work is
// laid out, and what becomes of records that cannot be computed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>

#include "output/test_folder.h"
#include "program.h"
#include "results.h"

namespace quintet {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Key;
using testing::Pair;

std::filesystem::path decoder_fixture(const std::string& name) {
  return std::filesystem::path(QUINTET_FIXTURES) / "decoders" / name;
}

// What the original generates from these models, by model and case.
json generated_cases() {
  return read_json(std::filesystem::path(QUINTET_FIXTURES) / "generation" / "models.json");
}

class Generate : public testing::Test {
 protected:
  Outcome run(const std::string& command, const std::string& model, const std::string& input,
              std::vector<std::string> more = {}, const RunSettings& settings = {}) {
    write_file(folder_ / "in.jsonl", input);
    std::vector<std::string> arguments = {command,
                                          "--model",
                                          decoder_fixture(model).string(),
                                          "--input",
                                          (folder_ / "in.jsonl").string(),
                                          "--output",
                                          output_.string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_quintet(arguments, settings);
  }
  std::vector<json> lines() const { return json_lines(read_file(output_)); }

  // The records of a case as input lines.
  static std::string input_of(const json& records) {
    std::string text;
    for (size_t i = 0; i < records.size(); ++i) {
      const bool has_source = !records[i]["input_ids"].empty();
      json line = {{"id", "r" + std::to_string(i)},
                   {"input_ids", has_source ? records[i]["input_ids"] : records[i]["prompt"]}};
      if (has_source) line["decoder_input_ids"] = records[i]["prompt"];
      text += line.dump() + "\n";
    }
    return text;
  }

  TestFolder folder_;
  std::filesystem::path output_ = folder_ / "out.jsonl";
};

TEST_F(Generate, TokensOfTheOriginalInTheOrderOfTheInput) {
  const json models = generated_cases();
  for (const auto& [model, cases] : models.items()) {
    for (const json& c : cases) {
      const std::string config = (folder_ / "options.json").string();
      write_file(config, c["options"].dump());
      const Outcome outcome = run("generate", model, input_of(c["records"]),
                                  {"--generation-config", config, "--overwrite"});
      EXPECT_EQ(outcome.code, 0) << outcome.err;
      std::vector<std::pair<std::string, json>> expected;
      for (size_t i = 0; i < c["records"].size(); ++i) {
        for (const json& sequence : c["records"][i]["sequences"]) {
          expected.emplace_back("r" + std::to_string(i), sequence);
        }
      }
      const std::vector<json> got = lines();
      ASSERT_EQ(got.size(), expected.size()) << model << " " << c["name"];
      for (size_t i = 0; i < got.size(); ++i) {
        EXPECT_EQ(got[i]["id"], expected[i].first) << model << " " << c["name"];
        EXPECT_EQ(got[i]["output_ids"], expected[i].second) << model << " " << c["name"];
      }
    }
  }
}

TEST_F(Generate, EqualLinesHoweverItIsLaidOut) {
  const std::vector<std::string> cores = one_core_devices();
  const std::string two = cores.size() > 1 ? cores[0] + "," + cores[1] : cores[0] + ",reference:0";
  for (const std::string model : {"t5", "gpt2"}) {
    const std::string input = input_of(generated_cases()[model][0]["records"]);
    const std::vector<std::string> beams = {"--num-beams", "3", "--max-new-tokens", "9",
                                            "--overwrite"};
    EXPECT_EQ(run("generate", model, input, beams).code, 0);
    const std::string expected = read_file(output_);
    EXPECT_THAT(expected, HasSubstr("\"score\""));
    const std::vector<std::vector<std::string>> layouts = {
        {"--threads", "1"},
        {"--batch-size", "3"},
        {"--devices", two, "--device-map", "even"},
        {"--devices", two, "--batch-size", "6"}};
    for (std::vector<std::string> layout : layouts) {
      if (cores.size() < 2 && layout[0] == "--devices") continue;
      layout.insert(layout.end(), beams.begin(), beams.end());
      const Outcome outcome = run("generate", model, input, layout);
      EXPECT_EQ(outcome.code, 0) << outcome.err;
      EXPECT_EQ(read_file(output_), expected) << model << " " << layout[0] << " " << layout[1];
    }
  }
}

TEST_F(Generate, SamplesDependOnSeedAndRecordAlone) {
  const json records = generated_cases()["gpt2"][0]["records"];
  const auto sample = [&](const std::string& seed, const std::string& batch) {
    EXPECT_EQ(run("generate", "gpt2", input_of(records),
                  {"--do-sample", "--seed", seed, "--batch-size", batch, "--max-new-tokens", "12",
                   "--num-return-sequences", "2", "--overwrite"})
                  .code,
              0);
    return read_file(output_);
  };
  const std::string seven = sample("7", "2");
  EXPECT_EQ(json_lines(seven).size(), 2 * records.size());
  EXPECT_EQ(sample("7", "32"), seven);
  EXPECT_NE(sample("8", "32"), seven);
}

TEST_F(Generate, RejectsByNameAndGoesOn) {
  const Outcome outcome =
      run("generate", "gpt2",
          "{\"id\": \"good\", \"input_ids\": [3, 4]}\n"
          "{\"id\": \"outside\", \"input_ids\": [3, 24]}\n"
          "{\"id\": \"good\", \"input_ids\": [5]}\n"
          "{\"id\": \"masked\", \"input_ids\": [5, 6], \"attention_mask\": [0, 0]}\n"
          "{\"id\": \"t5's\", \"input_ids\": [5], \"decoder_input_ids\": [1]}\n"
          "{\"id\": \"long\", \"input_ids\": [" +
              [] {
                std::string ids = "1";
                for (int i = 0; i < 60; ++i) ids += ", 1";
                return ids;
              }() +
              "]}\n"
              "{\"id\": \"last\", \"input_ids\": [7]}\n",
          {"--max-new-tokens", "3"});
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  const std::vector<json> got = lines();
  ASSERT_EQ(got.size(), 2U);
  EXPECT_EQ(got[0]["id"], "good");
  EXPECT_EQ(got[1]["id"], "last");
  const auto rejects = read_rejects(output_);
  EXPECT_THAT(rejects, Contains(Pair("outside", HasSubstr("24"))));
  EXPECT_THAT(rejects, Contains(Pair("good", HasSubstr("more than once"))));
  EXPECT_THAT(rejects, Contains(Pair("masked", HasSubstr("attention_mask"))));
  EXPECT_THAT(rejects, Contains(Pair("t5's", HasSubstr("decoder_input_ids"))));
  EXPECT_THAT(rejects, Contains(Pair("long", HasSubstr("48"))));
}

// Killed three times, each time with more records finished; what is finished is not done again.
TEST_F(Generate, ResumesToTheSameFile) {
  constexpr int kRecords = 600;
  std::string input;
  for (int i = 0; i < kRecords; ++i) {
    input += json{{"id", i}, {"input_ids", {2 + i % 20, 3 + i % 7}}}.dump() + "\n";
  }
  const std::filesystem::path stats = folder_ / "stats.json";
  for (const std::string beams : {"1", "3"}) {
    const std::vector<std::string> options = {
        "--max-new-tokens", "20", "--num-beams", beams,
        "--batch-size",     "6",  "--stats",     stats.string()};
    output_ = folder_ / ("whole" + beams + ".jsonl");
    ASSERT_EQ(run("generate", "gpt2", input, options).code, 0);
    const std::string expected = read_file(output_);
    output_ = folder_ / ("killed" + beams + ".jsonl");
    const std::filesystem::path spool = output_.string() + ".spool";
    std::vector<std::string> resume = options;
    resume.push_back("--resume");
    for (int kills = 1; kills <= 3; ++kills) {
      RunSettings settings;
      settings.signal_now = [&] {
        std::error_code none;
        const auto size = std::filesystem::file_size(spool, none);
        return !none && size > expected.size() * static_cast<size_t>(kills) / 5 ? SIGKILL : 0;
      };
      ASSERT_EQ(run("generate", "gpt2", input, resume, settings).signal, SIGKILL);
      ASSERT_TRUE(std::filesystem::exists(spool));
    }
    EXPECT_EQ(run("generate", "gpt2", input, resume).code, 0);
    EXPECT_TRUE(read_file(output_) == expected) << "beams: " << beams;
    const json told = read_json(stats);
    EXPECT_GT(told["resumed"], kRecords / 10);
    EXPECT_LT(told["resumed"], kRecords);
    EXPECT_EQ(told["resumed"].get<int>() + told["records"].get<int>(), kRecords);
    // Other options would make other lines.
    resume[1] = "21";
    const Outcome other = run("generate", "gpt2", input, resume);
    EXPECT_EQ(other.code, 2);
    EXPECT_THAT(other.err, HasSubstr("max_new_tokens"));
  }
}

// Parts of one input name every record once, and join to what one run says of it.
TEST_F(Generate, ShardsJoinToTheWhole) {
  std::string input;
  for (int i = 0; i < 9; ++i) {
    input += json{{"id", i % 4}, {"input_ids", {i % 4 == 1 && i < 4 ? 99 : 2 + i}}}.dump() + "\n";
  }
  for (const std::string command : {"generate", "score"}) {
    std::vector<std::string> options = {"--overwrite", "--on-duplicate", "rename"};
    if (command == "generate") {
      options.insert(options.end(),
                     {"--max-new-tokens", "4", "--num-beams", "2", "--num-return-sequences", "2"});
    }
    output_ = folder_ / "whole.jsonl";
    EXPECT_EQ(run(command, "gpt2", input, options).code, 1);
    std::vector<std::string> merge = {"merge", "--overwrite", "--output",
                                      (folder_ / "joined.jsonl").string()};
    for (const std::string i : {"1", "2", "3"}) {
      std::vector<std::string> part = options;
      part.insert(part.end(), {"--shard", i + "/3"});
      output_ = folder_ / ("part" + i + ".jsonl");
      const Outcome outcome = run(command, "gpt2", input, part);
      EXPECT_EQ(outcome.code, i == "2" ? 1 : 0) << outcome.err;
      merge.push_back(output_.string());
    }
    const Outcome joined = run_quintet(merge);
    EXPECT_EQ(joined.code, 1) << joined.err;
    EXPECT_THAT(sorted_lines(read_file(folder_ / "joined.jsonl")),
                testing::ContainerEq(sorted_lines(read_file(folder_ / "whole.jsonl"))));
    EXPECT_EQ(read_file(folder_ / "joined.jsonl.rejects.jsonl"),
              read_file(folder_ / "whole.jsonl.rejects.jsonl"));
  }
}

TEST_F(Generate, OptionsThatCannotBe) {
  const auto refused = [&](const std::string& model, const std::vector<std::string>& more) {
    const Outcome outcome = run("generate", model, "{\"input_ids\": [3]}\n", more);
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(output_));
    return outcome.err;
  };
  EXPECT_THAT(refused("gpt2", {"--num-beams", "0"}), HasSubstr("num_beams"));
  EXPECT_THAT(refused("gpt2", {"--num-return-sequences", "2"}), HasSubstr("num_return_sequences"));
  const std::string config = (folder_ / "options.json").string();
  write_file(config, R"({"guidance_scale": 2.0})");
  EXPECT_THAT(refused("gpt2", {"--generation-config", config}), HasSubstr("guidance_scale"));
  write_file(config, R"({"max_new_tokns": 2})");
  EXPECT_THAT(refused("gpt2", {"--generation-config", config}), HasSubstr("max_new_tokns"));
  EXPECT_THAT(refused("gpt2", {"--device-map", R"({"encoder": {"cpu:0": [0]}})"}),
              HasSubstr("encoder"));
  EXPECT_THAT(
      refused("t5", {"--device-map", R"({"encoder": {"cpu:0": [0]}, "decoder": {"cpu:0": [0]}})"}),
      AllOf(HasSubstr("decoder"), HasSubstr("1")));
}

// The example checkpoint is an encoder; the decoders of the fixtures have no tokenizer.
TEST_F(Generate, WhatNeedsATokenizerIsRefusedWithoutOne) {
  const std::string input = "{\"input_ids\": [3]}\n";
  EXPECT_THAT(run("generate", "gpt2", input, {"--stream"}).err, HasSubstr("tokenizer"));
  const std::string config = (folder_ / "options.json").string();
  write_file(config, R"({"stop_strings": ["x"]})");
  EXPECT_THAT(run("generate", "gpt2", input, {"--generation-config", config}).err,
              HasSubstr("tokenizer"));
  EXPECT_THAT(run("score", "gpt2", input, {"--choices", "a,b"}).err, HasSubstr("tokenizer"));
  EXPECT_THAT(run_quintet({"generate", "--model", example_model().string(), "--input", "-",
                           "--output", "-"})
                  .err,
              HasSubstr("decoder"));
}

// Records with ids go on.
TEST_F(Generate, TextsWithoutATokenizerAreRejected) {
  for (const std::string model : {"gpt2", "t5"}) {
    for (const std::string command : {"generate", "score"}) {
      const Outcome outcome = run(command, model,
                                  "{\"id\": \"text\", \"text\": \"hello\"}\n"
                                  "{\"id\": \"pair\", \"text\": \"\", \"target\": \"hello\"}\n"
                                  "{\"id\": \"ids\", \"input_ids\": [3, 4]}\n",
                                  {"--overwrite"});
      EXPECT_EQ(outcome.code, 1) << outcome.err;
      ASSERT_EQ(lines().size(), 1U) << model << " " << command;
      EXPECT_EQ(lines()[0]["id"], "ids");
      EXPECT_THAT(read_rejects(output_),
                  ElementsAre(Pair("pair", HasSubstr("no tokenizer")),
                              Pair("text", AllOf(HasSubstr("no tokenizer.json"),
                                                 HasSubstr("give input_ids")))));
    }
  }
  write_file(folder_ / "in.txt", "hello\n");  // none of these could have ids
  const Outcome refused =
      run_quintet({"generate", "--model", decoder_fixture("gpt2").string(), "--input",
                   (folder_ / "in.txt").string(), "--output", (folder_ / "x.jsonl").string()});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("no tokenizer.json"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "x.jsonl"));
}

TEST_F(Generate, PlanTellsCachesBeforehand) {
  const Outcome plan = run_quintet({"plan", "--model", decoder_fixture("t5").string(),
                                    "--max-new-tokens", "50", "--num-beams", "4", "--json"});
  EXPECT_EQ(plan.code, 0) << plan.err;
  const json facts = json::parse(plan.out);
  EXPECT_EQ(facts["fits"], true);
  EXPECT_GT(facts["devices"][0]["cache_bytes"].get<int64_t>(), 0);
}

// exp of the mean of -log p; equal logits over the vocabulary give its size.
TEST_F(Generate, ScoreTellsWhatFollowsFromItsLogits) {
  const std::filesystem::path logits = folder_ / "logits.safetensors";
  const Outcome outcome =
      run("score", "gpt2",
          "{\"id\": \"a\", \"input_ids\": [3, 4, 9, 9]}\n"
          "{\"id\": \"one\", \"input_ids\": [3]}\n"
          "{\"id\": \"labels\", \"input_ids\": [3, 4, 9], \"labels\": [-100, -100, 8]}\n"
          "{\"id\": \"padded\", \"input_ids\": [0, 3, 4, 9], \"attention_mask\": [0, 1, 1, 1], "
          "\"position_ids\": [0, 0, 1, 2]}\n",
          {"--logits", logits.string()});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const std::vector<json> got = lines();
  ASSERT_EQ(got.size(), 4U);
  const Arrays rows = read_safetensors_arrays(logits);
  const auto logprob = [&](const std::string& id, int64_t row, size_t token) {
    const std::vector<float> values = rows.at(id).row(row);
    double sum = 0;
    for (const float value : values) sum += std::exp(static_cast<double>(value));
    return values[token] - std::log(sum);
  };
  EXPECT_EQ(got[0]["tokens"], json({4, 9, 9}));
  const double sum = logprob("a", 0, 4) + logprob("a", 1, 9) + logprob("a", 2, 9);
  EXPECT_NEAR(got[0]["logprob"].get<double>(), sum, 1e-5);
  EXPECT_NEAR(got[0]["loss"].get<double>(), -sum / 3, 1e-5);
  EXPECT_NEAR(got[0]["perplexity"].get<double>(), std::exp(-sum / 3), 1e-4);
  EXPECT_EQ(got[1]["n_tokens"], 0);
  EXPECT_TRUE(got[1]["perplexity"].is_null());
  EXPECT_NEAR(got[2]["logprob"].get<double>(), logprob("labels", 1, 8), 1e-5);
  // The same text behind padding, its positions given: the same bits.
  EXPECT_EQ(rows.at("padded").row(1), rows.at("a").row(0));
  EXPECT_EQ(rows.at("padded").row(3), rows.at("a").row(2));
  EXPECT_EQ(got[3]["token_logprobs"][0], got[0]["token_logprobs"][0]);
}

TEST_F(Generate, ScoreOfASequenceDoesNotDependOnTheOthers) {
  std::string all;
  std::vector<std::string> each;
  for (int i = 0; i < 12; ++i) {
    json line = {{"id", i}, {"input_ids", json::array()}, {"labels", {4 + i % 5, 2, 1}}};
    for (int n = 0; n <= i; ++n) line["input_ids"].push_back(2 + (i * n) % 20);
    each.push_back(line.dump() + "\n");
    all += each.back();
  }
  EXPECT_EQ(run("score", "t5", all).code, 0);
  const std::string together = read_file(output_);
  std::string alone;
  for (const std::string& line : each) {
    EXPECT_EQ(run("score", "t5", line, {"--overwrite"}).code, 0);
    alone += read_file(output_);
  }
  EXPECT_EQ(together, alone);
}

}  // namespace
}  // namespace quintet
