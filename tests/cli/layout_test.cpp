// Devices, plans and what does not change results; tokenize, info, statistics and traces.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

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

class LayoutTest : public testing::Test {
 protected:
  LayoutTest() {
    std::mt19937 random(2);
    for (int i = 1; i <= 31; ++i) {
      std::string record = ">r" + std::to_string(i) + "\n";
      for (int n = i; n > 0; --n) record += "ACDEFGHIKLMNPQRSTVWY"[random() % 20];
      records_.push_back(record + "\n");
    }
    write_records(input_);
  }

  void write_records(const std::filesystem::path& path) {
    std::string text;
    for (const std::string& record : records_) text += record;
    write_file(path, text);
  }

  Arrays run(const std::vector<std::string>& more) {
    std::vector<std::string> arguments = more;
    arguments.push_back("--overwrite");
    const Outcome outcome = embed(example_model(), input_, folder_ / "out.safetensors", arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return read_safetensors_arrays(folder_ / "out.safetensors");
  }

  Outcome plan(std::vector<std::string> more) {
    more.insert(more.begin(), {"plan", "--model", example_model().string()});
    return run_quintet(more);
  }

  TestFolder folder_;
  std::filesystem::path input_ = folder_ / "in.fasta";
  std::vector<std::string> records_;
};

TEST_F(LayoutTest, ResultsAreTheSameBitsHoweverTheWorkIsCut) {
  const Arrays expected = run({});
  EXPECT_EQ(expected.size(), 31U);
  EXPECT_EQ(run({"--threads", "1"}), expected);
  EXPECT_EQ(run({"--tokens-per-batch", "1"}), expected);
  EXPECT_EQ(run({"--tokens-per-batch", "40"}), expected);
  std::shuffle(records_.begin(), records_.end(), std::mt19937(3));
  write_records(input_);
  EXPECT_EQ(run({}), expected);
  EXPECT_EQ(run({"--tokens-per-batch", "100"}), expected);
}

TEST_F(LayoutTest, ResultsAreTheSameBitsOverSeveralDevices) {
  const auto devices = one_core_devices();
  if (devices.size() < 2) GTEST_SKIP() << "two cores are needed";
  const Arrays expected = run({});
  const std::string both = devices[0] + "," + devices[1];
  EXPECT_EQ(run({"--devices", devices[1]}), expected);
  EXPECT_EQ(run({"--devices", both}), expected);
  EXPECT_EQ(run({"--devices", both, "--device-map", "even", "--tokens-per-batch", "50"}), expected);
  EXPECT_EQ(run({"--devices", both, "--device-map", "even", "--no-lend"}), expected);
  const json map = {{devices[1], {0, 1, 2, 3, 4}}, {devices[0], {5}}};
  write_file(folder_ / "map.json", map.dump());
  EXPECT_EQ(run({"--device-map", (folder_ / "map.json").string()}), expected);
  const json given = {{devices[0], {0}}, {devices[1], {1, 2, 3, 4, 5}}};
  EXPECT_EQ(run({"--device-map", given.dump(), "--tokens-per-batch", "20"}), expected);
}

TEST_F(LayoutTest, StatsAndTrace) {
  const std::string stats_path = (folder_ / "stats.json").string();
  const std::string trace_path = (folder_ / "trace.json").string();
  run({"--stats", stats_path, "--trace", trace_path, "--tokens-per-batch", "100"});
  const json stats = read_json(stats_path);
  EXPECT_EQ(stats["records"], 31);
  EXPECT_EQ(stats["tokens"], 31 * 32 / 2 + 31);  // residues and </s>
  for (const char* key : {"seconds", "tokens_per_second", "load_seconds", "planned_peak_bytes",
                          "measured_peak_bytes"}) {
    EXPECT_GT(stats[key].get<double>(), 0) << key;
  }
  EXPECT_NEAR(stats["tokens_per_second"].get<double>() * stats["seconds"].get<double>(),
              stats["tokens"].get<double>(), 1e-6 * stats["tokens"].get<double>());
  ASSERT_EQ(stats["stages"].size(), 1U);
  const json& stage = stats["stages"][0];
  EXPECT_EQ(stage["device"], "cpu:0");
  EXPECT_THAT(stage["blocks"].get<std::vector<int>>(), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_GT(stage["busy"].get<double>(), 0);
  EXPECT_LE(stage["busy"].get<double>(), 1);
  EXPECT_GE(stage["micro_batches"].get<int>(), 6);
  const json trace = read_json(trace_path);
  const json& events = trace.is_array() ? trace : trace["traceEvents"];
  EXPECT_GE(events.size(), 6U);
  std::map<int, std::string> tracks;
  std::map<std::string, std::set<std::string>> stretches;  // by track
  for (const json& event : events) {
    if (event["ph"] == "M" && event["name"] == "thread_name") {
      tracks[event["tid"]] = event["args"]["name"];
    } else if (event["ph"] == "X") {
      stretches[tracks[event["tid"]]].insert(event["name"]);
      EXPECT_GE(event["dur"].get<double>(), 0);
    }
  }
  EXPECT_THAT(stretches["reader"], Contains("read"));
  EXPECT_THAT(stretches["writer"], AllOf(Contains("spool"), Contains("build")));
}

TEST_F(LayoutTest, PlanForProgramsAndForPeople) {
  const std::string svg = (folder_ / "plan.svg").string();
  const Outcome outcome = plan({"--input", input_.string(), "--json", "--svg", svg});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const json value = json::parse(outcome.out);
  EXPECT_EQ(value["n_layers"], 6);
  EXPECT_EQ(value["dtype"], "float16");
  EXPECT_EQ(value["fits"], true);
  EXPECT_GT(value["tokens_per_second"].get<double>(), 0);
  EXPECT_EQ(value["device_map"]["cpu:0"].size(), 6U);
  const json& stage = value["stages"][0];
  for (const char* key : {"weight_bytes", "activation_bytes", "needed_bytes", "memory_bytes",
                          "time_share", "utilisation"}) {
    EXPECT_GT(stage[key].get<double>(), 0) << key;
  }
  EXPECT_THAT(read_file(svg), AllOf(HasSubstr("<svg"), HasSubstr("</svg>"), HasSubstr("cpu:0")));
  EXPECT_THAT(plan({"--lengths", "50,300,1200"}).out,
              AllOf(HasSubstr("cpu:0"), HasSubstr("0-5"), HasSubstr("fits")));
}

TEST_F(LayoutTest, TooLittleMemoryIsSaidWithSizesAndWhatWouldFit) {
  const Outcome planned = plan({"--max-memory", "2MiB"});
  EXPECT_EQ(planned.code, 1);
  EXPECT_THAT(planned.out, AllOf(HasSubstr("does not fit"), HasSubstr("2.00 MiB is available"),
                                 HasSubstr("what would fit:")));
  const Outcome refused =
      embed(example_model(), input_, folder_ / "out.h5", {"--max-memory", "2MiB"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("2.00 MiB is available"), HasSubstr("what would fit:")));
  EXPECT_THAT(folder_.names(), ElementsAre("in.fasta"));
}

TEST_F(LayoutTest, DevicesAndInfo) {
  const Outcome devices = run_quintet({"devices", "--json"});
  EXPECT_EQ(devices.code, 0);
  const json list = json::parse(devices.out);
  EXPECT_EQ(list[0]["name"], "cpu:0");
  EXPECT_GT(list[0]["cores"].get<int>(), 0);
  EXPECT_GT(list[0]["free_bytes"].get<double>(), 0);
  EXPECT_THAT(run_quintet({"devices"}).out, AllOf(HasSubstr("cpu:0"), HasSubstr("free")));

  const json info = json::parse(run_quintet({"info", example_model().string(), "--json"}).out);
  EXPECT_EQ(info["model_type"], "t5");
  EXPECT_EQ(info["stored as"], "float16");
  EXPECT_THAT(run_quintet({"info", model_fixture("umt5_encoder").string()}).out,
              AllOf(HasSubstr("umt5"), HasSubstr("tokenizer")));
}

TEST_F(LayoutTest, TokenizeTellsIdsPiecesAndOffsets) {
  const Outcome text =
      run_quintet({"tokenize", "--model", example_model().string(), "--input", "-"},
                  {.input = "M A\n\nM  A\tL\n"});
  EXPECT_EQ(text.code, 0) << text.err;
  const auto lines = json_lines(text.out);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0]["id"], "1");
  EXPECT_THAT(lines[0]["input_ids"].get<std::vector<int>>(), ElementsAre(19, 3, 1));
  EXPECT_THAT(lines[0]["pieces"].get<std::vector<std::string>>(), ElementsAre("▁M", "▁A", "</s>"));
  EXPECT_EQ(lines[0]["offsets"][0], json({0, 1}));
  EXPECT_EQ(lines[0]["offsets"][2], json({3, 3}));
  EXPECT_THAT(lines[1]["input_ids"].get<std::vector<int>>(), ElementsAre(1));
  EXPECT_THAT(lines[2]["input_ids"].get<std::vector<int>>(), ElementsAre(19, 3, 4, 1));

  const Outcome fasta =
      run_quintet({"tokenize", "--model", example_model().string(), "--input", "-"},
                  {.input = ">a x\nMaU\n>b\n"});
  EXPECT_EQ(fasta.code, 1);
  const auto proteins = json_lines(fasta.out);
  EXPECT_THAT(proteins[0]["input_ids"].get<std::vector<int>>(), ElementsAre(19, 3, 23, 1));
  EXPECT_THAT(proteins[1]["error"].get<std::string>(), HasSubstr("no residues"));
}

// 3Di states keep their lower case; the prefix is the preset's.
TEST_F(LayoutTest, TokenizeByProteinPreset) {
  const std::string model = std::string(QUINTET_FIXTURES) + "/tokenizers/prostt5_like";
  const auto ids = [&](const std::string& preset, const std::string& residues) {
    const Outcome outcome =
        run_quintet({"tokenize", "--model", model, "--input", "-", "--protein", preset},
                    {.input = ">a\n" + residues + "\n"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return json_lines(outcome.out).at(0)["input_ids"].get<std::vector<int>>();
  };
  EXPECT_THAT(ids("prostt5-aa", "mktayu"), ElementsAre(149, 19, 14, 11, 3, 18, 23, 1));
  EXPECT_THAT(ids("prostt5-3di", "dvqlc"), ElementsAre(148, 130, 145, 141, 137, 129, 1));
}

}  // namespace
}  // namespace quintet
