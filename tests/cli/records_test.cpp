// What becomes of records: which are embedded, which rejected and why, and which rows they get.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "output/test_folder.h"
#include "program.h"
#include "results.h"

namespace quintet {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Key;
using testing::Pair;

class Records : public testing::Test {
 protected:
  // Embeds `text` into out.jsonl; what it holds is in `arrays_`.
  Outcome embed_text(const std::string& text, const std::string& name,
                     std::vector<std::string> more = {}) {
    write_file(folder_ / name, text);
    more.insert(more.end(), {"--overwrite", "--stats", stats_.string()});
    Outcome outcome = embed(example_model(), folder_ / name, output_, more);
    arrays_ = read_jsonl_arrays(read_file(output_));
    return outcome;
  }
  Outcome fasta(const std::string& text, const std::vector<std::string>& more = {}) {
    return embed_text(text, "in.fasta", more);
  }
  Outcome jsonl(const std::string& text, const std::vector<std::string>& more = {}) {
    return embed_text(text, "in.jsonl", more);
  }

  TestFolder folder_;
  std::filesystem::path output_ = folder_ / "out.jsonl";
  std::filesystem::path stats_ = folder_ / "stats.json";
  Arrays arrays_;
};

TEST_F(Records, OneRowPerResidue) {
  EXPECT_EQ(fasta(">one\nM\n>two words\nMK\n>long\nMKVLAAGIVG\nLLLAQPSW\n").code, 0);
  EXPECT_THAT(arrays_["one"].shape, ElementsAre(1, 64));
  EXPECT_THAT(arrays_["two"].shape, ElementsAre(2, 64));
  EXPECT_THAT(arrays_["long"].shape, ElementsAre(18, 64));
}

// The same proteins as token ids: residues, then </s>, whose row is left out.
TEST_F(Records, ResiduesAreTheTokensTheyShouldBe) {
  fasta(">p\nMALV\n");
  const Array protein = arrays_["p"];
  jsonl(R"({"id": "p", "input_ids": [19, 3, 4, 6, 1]})");
  ASSERT_EQ(arrays_["p"].rows(), 5);
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(protein.row(i), arrays_["p"].row(i)) << i;
}

// Against what the original Python implementation computes.
TEST_F(Records, ValuesOfTheReference) {
  for (const std::string model : {"t5_v1_0", "umt5_encoder", "ankh_like", "format_bf16"}) {
    const auto folder = model_fixture(model);
    const Arrays expected = read_safetensors_arrays(folder / "expected" / "model.safetensors");
    for (const auto& test : read_json(folder / "cases.json")) {
      const std::string name = test.at("name");
      std::string text;
      for (size_t row = 0; row < test.at("input_ids").size(); ++row) {
        nlohmann::json record = {{"id", std::to_string(row)},
                                 {"input_ids", test["input_ids"][row]}};
        if (!test["attention_mask"].is_null())
          record["attention_mask"] = test["attention_mask"][row];
        text += record.dump() + "\n";
      }
      write_file(folder_ / "ids.jsonl", text);
      ASSERT_EQ(embed(folder, folder_ / "ids.jsonl", output_, {"--overwrite"}).code, 0);
      arrays_ = read_jsonl_arrays(read_file(output_));
      const Array& whole = expected.at(name + ".last_hidden_state");
      const int64_t time = whole.shape.at(1);
      const int64_t width = whole.shape.at(2);
      for (const auto& [id, array] : arrays_) {
        double error = 0;
        double norm = 0;
        for (int64_t i = 0; i < time; ++i) {
          if (!test["attention_mask"].is_null() && test["attention_mask"][std::stoul(id)][i] == 0) {
            EXPECT_EQ(array.row(i), std::vector<float>(width));
            continue;
          }
          for (int64_t c = 0; c < width; ++c) {
            const double value = whole.values[(std::stoul(id) * time + i) * width + c];
            error += std::pow(array.values[i * width + c] - value, 2);
            norm += value * value;
          }
        }
        EXPECT_LE(std::sqrt(error), 5e-6 * std::sqrt(norm)) << model << " " << name << " " << id;
      }
    }
  }
}

TEST_F(Records, PrefixHasNoRow) {
  EXPECT_EQ(fasta(">p\nMALV\n", {"--prefix", "<extra_id_0>"}).code, 0);
  const Array protein = arrays_["p"];
  ASSERT_EQ(protein.rows(), 4);
  write_file(folder_ / "t.txt", "<extra_id_0> M A L V\n");
  const Outcome tokens = run_quintet(
      {"tokenize", "--model", example_model().string(), "--input", (folder_ / "t.txt").string()});
  const auto ids = json_lines(tokens.out).at(0).at("input_ids");
  ASSERT_EQ(ids.size(), 6U) << tokens.out;
  jsonl(nlohmann::json{{"id", "p"}, {"input_ids", ids}}.dump());
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(protein.row(i), arrays_["p"].row(i + 1)) << i;
}

TEST_F(Records, OddLettersAreReadAsTheyShouldBeAndReported) {
  const Outcome odd = fasta(">a x\r\nm K-.V\r\nZOBU\r\n>stop\nMKV*\n>x\nXXXX\n");
  EXPECT_EQ(odd.code, 0);
  EXPECT_THAT(odd.err, AllOf(HasSubstr("5 letters were upper-cased or read as X"),
                             HasSubstr("trailing stops were dropped")));
  const Arrays got = arrays_;
  EXPECT_EQ(fasta(">a\nMKVXXXX\n>stop\nMKV\n>x\nXXXX\n").code, 0);
  EXPECT_EQ(got, arrays_);
}

TEST_F(Records, RejectsByNameAndGoesOn) {
  const Outcome outcome = fasta(">a\n>b\nMK\n>c\nM*K\n>d\nMKV\n>d\nMMM\n");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(arrays_, ElementsAre(Key("b"), Key("d")));
  EXPECT_EQ(arrays_["d"].rows(), 3);
  EXPECT_THAT(read_rejects(output_),
              ElementsAre(Pair("a", HasSubstr("no residues")), Pair("c", HasSubstr("'*' at")),
                          Pair("d", HasSubstr("stands more than once"))));
  EXPECT_THAT(outcome.err, HasSubstr("3 records rejected, see " + output_.string()));
  const auto stats = read_json(stats_);
  EXPECT_EQ(stats["records_seen"], 5);
  EXPECT_EQ(stats["embedded"], 2);
  EXPECT_EQ(stats["rejected"], 3);
}

TEST_F(Records, StopsAsXByOption) {
  EXPECT_EQ(fasta(">c\nM*K\n>d\nMXK\n", {"--stop-as-x"}).code, 0);
  EXPECT_EQ(arrays_["c"], arrays_["d"]);
}

TEST_F(Records, SkipEmptyForgivesButNames) {
  EXPECT_EQ(fasta(">a\n>b\nMK\n>gaps\n--\n", {"--skip-empty"}).code, 0);
  EXPECT_THAT(arrays_, ElementsAre(Key("b")));
  EXPECT_THAT(read_rejects(output_), ElementsAre(Key("a"), Key("gaps")));
  EXPECT_EQ(fasta(">a\nM*K\n>b\n*MK\n>c\nMK\n", {"--skip-empty"}).code, 1);  // not empty
}

TEST_F(Records, EveryRecordFails) {
  const Outcome outcome = fasta(">a\n>b\nM*K\n");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(arrays_, ElementsAre());
  EXPECT_THAT(read_rejects(output_), ElementsAre(Key("a"), Key("b")));
}

TEST_F(Records, NoRecords) {
  const Outcome empty = fasta("");
  EXPECT_EQ(empty.code, 2);
  EXPECT_THAT(empty.err, HasSubstr("no records"));
  EXPECT_FALSE(std::filesystem::exists(output_));
  EXPECT_FALSE(std::filesystem::exists(output_.string() + ".spool"));
  const Outcome headless = fasta("MKV\n");
  EXPECT_EQ(headless.code, 1);
  EXPECT_THAT(headless.err, HasSubstr(":1"));  // the line
}

TEST_F(Records, DuplicateIds) {
  const std::string text = ">a\nMK\n>a\nMV\n>b\nMK\n>a\nML\n";
  EXPECT_EQ(fasta(text, {"--on-duplicate", "rename"}).code, 0);
  EXPECT_THAT(arrays_, ElementsAre(Key("a"), Key("a_2"), Key("a_3"), Key("b")));
  const Arrays renamed = arrays_;
  EXPECT_EQ(fasta(text, {"--on-duplicate", "first"}).code, 0);
  EXPECT_THAT(arrays_, ElementsAre(Key("a"), Key("b")));
  EXPECT_EQ(arrays_["a"], renamed.at("a"));
  EXPECT_EQ(fasta(text).code, 1);
  EXPECT_EQ(arrays_["a"], renamed.at("a"));
}

// A name that renaming made is taken, and other shards' records count.
TEST_F(Records, RenamedIdsKeepClearOfOthers) {
  const std::string text = ">a\nMK\n>a\nMV\n>a_2\nML\n>a\nMA\n";
  EXPECT_EQ(fasta(text, {"--on-duplicate", "rename"}).code, 0);
  EXPECT_THAT(arrays_, ElementsAre(Key("a"), Key("a_2"), Key("a_2_2"), Key("a_3")));
  EXPECT_EQ(fasta(text, {"--on-duplicate", "rename", "--shard", "2/2"}).code, 0);
  EXPECT_THAT(arrays_, ElementsAre(Key("a_2"), Key("a_3")));
  EXPECT_EQ(fasta(text, {"--shard", "2/2"}).code, 1);
  EXPECT_THAT(arrays_, ElementsAre());
}

TEST_F(Records, EqualSequencesAreComputedOnce) {
  EXPECT_EQ(fasta(">a\nMKVL\n>b\nMKVL\n>c\nmkv-l*\n>d\nMKVLA\n").code, 0);
  EXPECT_EQ(arrays_["a"], arrays_["b"]);
  EXPECT_EQ(arrays_["a"], arrays_["c"]);
  const auto stats = read_json(stats_);
  EXPECT_EQ(stats["records"], 2);
  EXPECT_EQ(stats["shared"], 2);
  EXPECT_EQ(stats["embedded"], 4);
}

TEST_F(Records, MasksAndPadding) {
  const std::string text =
      R"({"id": "alone", "input_ids": [5, 6, 7, 1]}
{"id": "right", "input_ids": [5, 6, 7, 1, 0, 0], "attention_mask": [1, 1, 1, 1, 0, 0]}
{"id": "left", "input_ids": [0, 0, 5, 6, 7, 1], "attention_mask": [0, 0, 1, 1, 1, 1]}
{"id": "unmasked", "input_ids": [5, 6, 7, 1, 0, 0]}
{"id": "hole", "input_ids": [5, 9, 7, 1], "attention_mask": [1, 0, 1, 1]}
{"id": "nothing", "input_ids": [1, 0, 0], "attention_mask": [0, 0, 0]}
)";
  EXPECT_EQ(jsonl(text).code, 0);
  const Arrays zeroed = arrays_;
  const std::vector<float> zeros(64);
  const Array& alone = zeroed.at("alone");
  ASSERT_EQ(zeroed.at("right").rows(), 6);
  ASSERT_EQ(zeroed.at("left").rows(), 6);
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(zeroed.at("right").row(i), alone.row(i)) << i;
    EXPECT_EQ(zeroed.at("left").row(i + 2), alone.row(i)) << i;
  }
  EXPECT_EQ(zeroed.at("right").row(5), zeros);
  EXPECT_EQ(zeroed.at("left").row(1), zeros);
  EXPECT_EQ(zeroed.at("hole").row(1), zeros);
  EXPECT_NE(zeroed.at("unmasked").row(0), alone.row(0));  // without a mask, padding counts
  EXPECT_NE(zeroed.at("unmasked").row(5), zeros);
  EXPECT_EQ(zeroed.at("nothing").values, std::vector<float>(3 * 64));

  EXPECT_EQ(jsonl(text, {"--masked-rows", "drop"}).code, 0);
  EXPECT_EQ(arrays_["right"], alone);
  EXPECT_EQ(arrays_["left"], alone);
  EXPECT_EQ(arrays_["hole"].rows(), 3);
  EXPECT_EQ(arrays_["hole"].row(1), zeroed.at("hole").row(2));
  EXPECT_EQ(arrays_["nothing"].rows(), 0);

  EXPECT_EQ(jsonl(text, {"--pool", "mean", "--normalize"}).code, 0);
  EXPECT_EQ(arrays_["right"], arrays_["alone"]);
  EXPECT_EQ(arrays_["nothing"].values, zeros);
}

TEST_F(Records, TokensOutsideTheVocabulary) {
  EXPECT_EQ(jsonl(R"({"id": "w", "input_ids": [5, 128]}
{"id": "x", "input_ids": [-1]}
{"id": "y", "input_ids": []}
{"id": "z", "input_ids": [5], "attention_mask": [1, 1]}
{"id": "ok", "input_ids": [127]}
)")
                .code,
            1);
  EXPECT_THAT(arrays_, ElementsAre(Key("ok")));
  const auto rejects = read_rejects(output_);
  EXPECT_THAT(rejects.at("w"), HasSubstr("token 128 at position 1"));
  EXPECT_THAT(rejects, ElementsAre(Key("w"), Key("x"), Key("y"), Key("z")));
}

// A text among ids, of a model without a tokenizer.
TEST_F(Records, TextsWithoutATokenizer) {
  write_file(folder_ / "in.jsonl",
             "{\"id\": \"ids\", \"input_ids\": [5, 6]}\n{\"id\": \"text\", \"text\": \"hello\"}\n"
             "{\"id\": \"more\", \"input_ids\": [7]}\n");
  const Outcome outcome = embed(model_fixture("t5_v1_0"), folder_ / "in.jsonl", output_);
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_THAT(read_jsonl_arrays(read_file(output_)), ElementsAre(Key("ids"), Key("more")));
  EXPECT_THAT(read_rejects(output_), ElementsAre(Pair("text", HasSubstr("no tokenizer"))));
}

TEST_F(Records, TextsHaveARowPerTokenAndAnEmptyOneIsAText) {
  EXPECT_EQ(embed_text("M A L\n\nM\r\n", "in.txt").code, 0);
  EXPECT_EQ(arrays_["1"].rows(), 4);
  EXPECT_EQ(arrays_["2"].rows(), 1);
  EXPECT_EQ(arrays_["3"].rows(), 2);
  const Outcome unknown = embed_text("M {a} L\n", "in.txt");
  EXPECT_EQ(unknown.code, 0);
  EXPECT_THAT(unknown.err, HasSubstr("not in the vocabulary"));
}

TEST_F(Records, CutOnlyOnRequestAndReported) {
  const std::string text = ">a\n" + std::string(1500, 'M') + "\n>b\nMK\n";
  EXPECT_EQ(fasta(text).code, 0);
  EXPECT_EQ(arrays_["a"].rows(), 1500);
  const Outcome cut = fasta(text, {"--max-tokens", "100"});
  EXPECT_EQ(cut.code, 0);
  EXPECT_EQ(arrays_["a"].rows(), 99);  // and </s>
  EXPECT_EQ(arrays_["b"].rows(), 2);
  EXPECT_THAT(cut.err, HasSubstr("1 record cut by --max-tokens: 100 of their 1501 tokens"));
}

TEST_F(Records, PoolingIsOverTheRows) {
  const std::string text = ">a\nMKVLAAGIVG\n>b\nM\n";
  fasta(text);
  const Arrays rows = arrays_;
  for (const std::string how : {"mean", "first", "last"}) {
    for (const bool normalize : {false, true}) {
      std::vector<std::string> more{"--pool", how};
      if (normalize) more.push_back("--normalize");
      EXPECT_EQ(fasta(text, more).code, 0);
      for (const auto& [id, array] : rows) {
        std::vector<double> expected(64);
        const int64_t n = array.rows();
        for (int64_t i = 0; i < n; ++i) {
          if (how == "first" && i > 0) continue;
          if (how == "last" && i < n - 1) continue;
          for (size_t c = 0; c < 64; ++c) {
            expected[c] += array.row(i)[c] / (how == "mean" ? static_cast<double>(n) : 1.0);
          }
        }
        double norm = 0;
        for (const double x : expected) norm += x * x;
        const double scale = normalize ? 1 / std::sqrt(norm) : 1.0;
        ASSERT_THAT(arrays_[id].shape, ElementsAre(64));
        for (size_t c = 0; c < 64; ++c) {
          EXPECT_NEAR(arrays_[id].values[c], expected[c] * scale, 2e-6) << how << " " << id;
        }
      }
    }
  }
}

// Of a record that no layout has room for, the sizes are told; the others are computed.
TEST_F(Records, TooLongForTheMemory) {
  const auto plan = nlohmann::json::parse(
      run_quintet({"plan", "--json", "--model", example_model().string()}).out);
  const auto& stage = plan["stages"][0];
  const int64_t little = stage["fixed_bytes"].get<int64_t>() +
                         stage["weight_bytes"].get<int64_t>() + (int64_t{16} << 20);
  const Outcome outcome = fasta(">s\nMKV\n>long\n" + std::string(40000, 'M') + "\n>t\nMK\n",
                                {"--max-memory", std::to_string(little)});
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_THAT(arrays_, ElementsAre(Key("s"), Key("t")));
  EXPECT_THAT(read_rejects(output_),
              ElementsAre(Pair("long", AllOf(HasSubstr("40001 tokens"), HasSubstr("need"),
                                             HasSubstr("is available")))));
}

}  // namespace
}  // namespace quintet
