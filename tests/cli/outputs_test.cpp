// Output formats and layouts as users' scripts read them, and what is done with files that are
// there already.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstring>

#include "core/dtype.h"
#include "output/test_folder.h"
#include "program.h"
#include "results.h"

namespace quintet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Key;

constexpr const char* kFasta = ">sp|P1|A_B x\nMKV\n>q/1.2\nMALWM\n>same\nMKV\n>e e\nmu\n";

class Outputs : public testing::Test {
 protected:
  Outputs() {
    write_file(input_, kFasta);
    EXPECT_EQ(run("rows.jsonl").code, 0);
    rows_ = read_jsonl_arrays(read_file(folder_ / "rows.jsonl"));
  }

  Outcome run(const std::string& output, const std::vector<std::string>& more = {}) {
    return embed(example_model(), input_, folder_ / output, more);
  }

  TestFolder folder_;
  std::filesystem::path input_ = folder_ / "in.fasta";
  Arrays rows_;  // as JSONL has them
};

TEST_F(Outputs, JsonlAndSafetensorsHoldTheSame) {
  EXPECT_THAT(rows_, ElementsAre(Key("e"), Key("q/1.2"), Key("same"), Key("sp|P1|A_B")));
  EXPECT_EQ(run("rows.safetensors").code, 0);
  EXPECT_EQ(read_safetensors_arrays(folder_ / "rows.safetensors"), rows_);
  const Outcome piped =
      run_quintet({"embed", "--model", example_model().string(), "--input", "-", "--output", "-"},
                  {.input = kFasta});
  EXPECT_EQ(piped.code, 0);
  EXPECT_EQ(read_jsonl_arrays(piped.out), rows_);
}

TEST_F(Outputs, StandardOutputHasNumbersAloneAndRejectsAreToldOnStandardError) {
  const Outcome piped = run_quintet(
      {"embed", "--model", example_model().string(), "--input", "-", "--output", "-", "--quiet"},
      {.input = ">a\nMK\n>b\n>c\nMV\n"});
  EXPECT_EQ(piped.code, 1);
  EXPECT_THAT(read_jsonl_arrays(piped.out), ElementsAre(Key("a"), Key("c")));
  EXPECT_THAT(piped.err, HasSubstr("rejected 'b' (line 3): no residues"));
}

TEST_F(Outputs, GzipWithSeveralMembers) {
  const std::string text = kFasta;
  for (const auto& [from, n] : {std::pair<size_t, size_t>{0, 20}, {20, text.size()}}) {
    gzFile file = gzopen((folder_ / "in.any").c_str(), "ab");
    const std::string part = text.substr(from, n);
    gzwrite(file, part.data(), static_cast<unsigned>(part.size()));
    gzclose(file);
  }
  EXPECT_EQ(embed(example_model(), folder_ / "in.any", folder_ / "gz.jsonl").code, 0);
  EXPECT_EQ(read_jsonl_arrays(read_file(folder_ / "gz.jsonl")), rows_);
  const std::string whole = read_file(folder_ / "in.any");
  write_file(folder_ / "cut.gz", whole.substr(0, whole.size() - 12));
  const Outcome cut = embed(example_model(), folder_ / "cut.gz", folder_ / "cut.jsonl");
  EXPECT_EQ(cut.code, 1);
  EXPECT_THAT(cut.err, HasSubstr("cut.gz"));
}

TEST_F(Outputs, ProtTransLayout) {
  EXPECT_EQ(run("p.h5").code, 0);
  const Hdf5Reader file(folder_ / "p.h5");
  EXPECT_THAT(file.names(), ElementsAre("e", "q_1_2", "same", "sp|P1|A_B"));
  EXPECT_EQ(file.array("q_1_2"), rows_["q/1.2"]);
  EXPECT_EQ(file.array("same"), rows_["same"]);
  EXPECT_EQ(file.text_attribute("q_1_2", "original_id"), "q/1.2");
  EXPECT_EQ(file.bytes_per_number("same"), 4U);
}

TEST_F(Outputs, IdsThatMeetInTheFile) {
  write_file(input_, ">a.b\nMK\n>a/b\nML\n>c\nMV\n");
  EXPECT_EQ(run("meet.h5").code, 1);
  EXPECT_THAT(Hdf5Reader(folder_ / "meet.h5").names(), ElementsAre("a_b", "c"));
  EXPECT_THAT(read_rejects(folder_ / "meet.h5").at("a/b"), HasSubstr("written as 'a_b'"));
  EXPECT_EQ(run("meet.jsonl").code, 0);
}

TEST_F(Outputs, LayoutsKeyedByMd5) {
  constexpr const char* kMd5OfMkv = "bc5a0dfbf35ec22ac2c0f8c1e5534d8e";
  for (const std::string layout : {"bio-embeddings", "tmbed"}) {
    const std::string name = layout + ".h5";
    EXPECT_EQ(run(name, {"--layout", layout}).code, 0);
    const Hdf5Reader file(folder_ / name);
    EXPECT_EQ(file.names().size(), 3U);  // MKV once
    EXPECT_THAT(file.names(), testing::Contains(kMd5OfMkv));
    EXPECT_EQ(file.text_attribute(kMd5OfMkv, "original_id"), "sp|P1|A_B");
    EXPECT_EQ(file.bytes_per_number(kMd5OfMkv), layout == "tmbed" ? 2U : 4U);
    EXPECT_THAT(file.array(kMd5OfMkv).shape, ElementsAre(3, 64));
  }
}

TEST_F(Outputs, FlatLayout) {
  EXPECT_EQ(run("flat.h5", {"--layout", "flat"}).code, 0);
  const Hdf5Reader file(folder_ / "flat.h5");
  const Array all = file.array("embeddings");
  EXPECT_THAT(all.shape, ElementsAre(13, 64));
  EXPECT_THAT(file.integers("embedding_ptr"), ElementsAre(3, 8, 11, 13));
  EXPECT_EQ(file.bytes("id"), "MKVMALWMMKVMX");  // as embedded: a letter per row
  EXPECT_THAT(file.integers("idptr"), ElementsAre(3, 8, 11, 13));
  EXPECT_EQ(file.bytes("original_id"), "sp|P1|A_Bq/1.2samee");
  EXPECT_EQ(all.row(3), rows_["q/1.2"].row(0));
  EXPECT_EQ(all.row(12), rows_["e"].row(1));
}

TEST_F(Outputs, Npy) {
  EXPECT_EQ(run("v.npy", {"--pool", "mean"}).code, 0);
  EXPECT_EQ(run("v.jsonl", {"--pool", "mean"}).code, 0);
  const Arrays vectors = read_jsonl_arrays(read_file(folder_ / "v.jsonl"));
  const std::string bytes = read_file(folder_ / "v.npy");
  EXPECT_THAT(bytes.substr(0, 128), HasSubstr("'shape': (4, 64)"));
  EXPECT_EQ(read_file(folder_ / "v.npy.ids.txt"), "sp|P1|A_B\nq/1.2\nsame\ne\n");
  const size_t data = bytes.size() - 4 * 64 * sizeof(float);
  std::vector<float> second(64);
  std::memcpy(second.data(), bytes.data() + data + 64 * sizeof(float), 64 * sizeof(float));
  EXPECT_EQ(second, vectors.at("q/1.2").values);
}

TEST_F(Outputs, NumberTypes) {
  for (const auto& [name, dtype] :
       {std::pair{"float16", DType::kFloat16}, std::pair{"bfloat16", DType::kBFloat16}}) {
    const std::string output = std::string(name) + ".safetensors";
    EXPECT_EQ(run(output, {"--output-dtype", name}).code, 0);
    const Arrays narrow_rows = read_safetensors_arrays(folder_ / output);
    for (const auto& [id, array] : rows_) {
      std::vector<std::byte> bits(array.values.size() * 2);
      Array expected = array;
      narrow(array.values.data(), array.values.size(), dtype, bits.data());
      widen(bits.data(), dtype, array.values.size(), expected.values.data());
      EXPECT_EQ(narrow_rows.at(id), expected) << name << " " << id;
    }
    EXPECT_EQ(run(std::string(name) + ".h5", {"--output-dtype", name}).code, 0);
    const Hdf5Reader file(folder_ / (std::string(name) + ".h5"));
    EXPECT_EQ(file.bytes_per_number("same"), 2U);
    EXPECT_EQ(file.array("same").values, narrow_rows.at("same").values);
  }
}

TEST_F(Outputs, WhatIsThereIsNotOverwrittenUnasked) {
  const std::string before = read_file(folder_ / "rows.jsonl");
  const Outcome refused = run("rows.jsonl", {"--pool", "mean"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("rows.jsonl: is there already; --overwrite"));
  EXPECT_EQ(read_file(folder_ / "rows.jsonl"), before);
  EXPECT_EQ(run("rows.jsonl", {"--pool", "mean", "--overwrite"}).code, 0);
  EXPECT_NE(read_file(folder_ / "rows.jsonl"), before);
  EXPECT_THAT(folder_.names(), ElementsAre("in.fasta", "rows.jsonl", "rows.jsonl.run.json"));
}

TEST_F(Outputs, ShardsJoinToTheWhole) {
  std::string text;
  for (int i = 0; i < 20; ++i)
    text += ">p" + std::to_string(i) + "\nMK" + std::string(i, 'A') + "\n";
  write_file(input_, text + ">bad\nM*K\n");
  EXPECT_EQ(run("whole.jsonl").code, 1);
  std::vector<std::string> merge{"merge", "--output", (folder_ / "joined.jsonl").string()};
  for (const std::string i : {"1", "2", "3"}) {
    EXPECT_EQ(run("part" + i + ".jsonl", {"--shard", i + "/3"}).code, i == "3" ? 1 : 0);
    merge.push_back((folder_ / ("part" + i + ".jsonl")).string());
  }
  const Outcome joined = run_quintet(merge);
  EXPECT_EQ(joined.code, 1) << joined.err;  // a part had a rejected record
  EXPECT_EQ(read_jsonl_arrays(read_file(folder_ / "joined.jsonl")),
            read_jsonl_arrays(read_file(folder_ / "whole.jsonl")));
  EXPECT_EQ(read_rejects(folder_ / "joined.jsonl"), read_rejects(folder_ / "whole.jsonl"));
  merge.push_back(merge.back());  // the last part twice
  const Outcome twice = run_quintet(merge);
  EXPECT_EQ(twice.code, 2);
  merge.insert(merge.begin() + 1, "--overwrite");
  EXPECT_EQ(run_quintet(merge).code, 2);
}

// Ids that come twice, in one part or in several, before and behind records that cannot be
// computed: every record is named by one part, and together they say what one run says.
TEST_F(Outputs, ShardsJoinToTheWholeWithDuplicatesAndRejects) {
  write_file(input_,
             ">x\nM*K\n>x\nMKV\n>a\nMK\n>empty\n\n>a\nML\n>x\nMM\n>a_2\nMA\n>y/z\nMKV\n"
             ">y.z\nMW\n>empty\nMG\n>a\nM*\n>a\nMC*C\n>x\nMD\n>late\nM**M\n>late\nMKVL\n");
  constexpr size_t kRecords = 15;
  for (const std::string on_duplicate : {"reject", "rename", "first"}) {
    for (const std::string ending : {".jsonl", ".h5"}) {
      const std::string whole = "whole" + ending;
      const std::vector<std::string> options = {"--on-duplicate", on_duplicate, "--overwrite"};
      EXPECT_EQ(run(whole, options).code, 1);
      for (const size_t n : {2U, 3U, 20U}) {
        std::vector<std::string> merge{"merge", "--overwrite", "--output",
                                       (folder_ / ("joined" + ending)).string()};
        for (size_t i = 1; i <= n; ++i) {
          std::vector<std::string> part = options;
          part.insert(part.end(), {"--shard", std::to_string(i) + "/" + std::to_string(n)});
          const std::string name = "part" + std::to_string(i) + ending;
          EXPECT_NE(run(name, part).code, 2);
          merge.push_back((folder_ / name).string());
        }
        const Outcome joined = run_quintet(merge);
        EXPECT_EQ(joined.code, 1) << joined.err;
        EXPECT_THAT(joined.err, HasSubstr("rejected"));
        const auto rejects =
            sorted_lines(read_file(folder_ / ("joined" + ending + ".rejects.jsonl")));
        EXPECT_EQ(rejects, sorted_lines(read_file(folder_ / (whole + ".rejects.jsonl"))));
        if (ending == ".h5") {
          EXPECT_EQ(Hdf5Reader(folder_ / "joined.h5").names(), Hdf5Reader(folder_ / whole).names());
        } else {
          const Arrays arrays = read_jsonl_arrays(read_file(folder_ / "joined.jsonl"));
          EXPECT_EQ(arrays, read_jsonl_arrays(read_file(folder_ / whole)));
          EXPECT_EQ(arrays.size() + rejects.size(), kRecords);
          EXPECT_TRUE(arrays.contains("x"));  // the first x cannot be computed, the second can
        }
      }
    }
  }
}

}  // namespace
}  // namespace quintet
