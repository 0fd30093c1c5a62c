#include "engine/identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "output/test_folder.h"

namespace quintet {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

// A model and an input of the test's own, so that they can be changed.
class Identity : public testing::Test {
 protected:
  Identity() {
    fs::copy(fs::path(QUINTET_SOURCE) / "examples" / "prott5-tiny", folder_ / "model");
    write(folder_ / "in.fasta", ">a\nMK\n");
    options_.model = (folder_ / "model").string();
    options_.input = (folder_ / "in.fasta").string();
    before_ = identity();
  }

  static void write(const fs::path& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
  }

  nlohmann::json identity(const std::string& reading = "prott5",
                          DType dtype = DType::kFloat16) const {
    const auto checkpoint = Checkpoint::open(options_.model);
    return nlohmann::json::parse(run_identity(options_, *checkpoint, reading, dtype));
  }

  static std::vector<std::string> different(const nlohmann::json& a, const nlohmann::json& b) {
    std::vector<std::string> keys;
    for (const auto& [key, value] : a.items()) {
      if (b.at(key) != value) keys.push_back(key);
    }
    return keys;
  }

  TestFolder folder_;
  Options options_;
  nlohmann::json before_;
};

TEST_F(Identity, LeavesOutWhatDoesNotChangeResults) {
  options_.devices = "cpu[0]";
  options_.device_map = "even";
  options_.max_memory = "2GiB";
  options_.threads = 3;
  options_.tokens_per_batch = 7;
  options_.lend_cores = false;
  options_.stats = "stats.json";
  options_.quiet = true;
  options_.resume = true;
  EXPECT_THAT(different(before_, identity()), IsEmpty());
}

TEST_F(Identity, NamesTheOptionThatDiffers) {
  const auto changed = [&](const std::function<void(Options&)>& change) {
    const Options plain = options_;
    change(options_);
    const auto keys = different(before_, identity());
    options_ = plain;
    return keys;
  };
  EXPECT_THAT(changed([](Options& o) { o.pool = Pooling::kFirst; }), ElementsAre("pool"));
  EXPECT_THAT(changed([](Options& o) { o.normalize = true; }), ElementsAre("normalize"));
  EXPECT_THAT(changed([](Options& o) { o.drop_masked_rows = true; }), ElementsAre("masked-rows"));
  EXPECT_THAT(changed([](Options& o) { o.max_tokens = 5; }), ElementsAre("max-tokens"));
  EXPECT_THAT(changed([](Options& o) { o.skip_empty = true; }), ElementsAre("skip-empty"));
  EXPECT_THAT(changed([](Options& o) { o.shard_count = 2; }), ElementsAre("shard"));
  EXPECT_THAT(changed([](Options& o) { o.on_duplicate = OnDuplicate::kFirst; }),
              ElementsAre("on-duplicate"));
  EXPECT_THAT(changed([](Options& o) { o.protein.prefix = "X"; }), ElementsAre("prefix"));
  EXPECT_THAT(changed([](Options& o) { o.protein.rare_residues = "U"; }),
              ElementsAre("rare-residues"));
  EXPECT_THAT(changed([](Options& o) { o.protein.stop_as_x = true; }), ElementsAre("stop-as-x"));
  EXPECT_THAT(different(before_, identity("text")), ElementsAre("reading"));
  EXPECT_THAT(different(before_, identity("prott5", DType::kFloat32)), ElementsAre("dtype"));
}

TEST_F(Identity, SeesOtherFiles) {
  write(folder_ / "in.fasta", ">a\nML\n");  // of the same size
  EXPECT_THAT(different(before_, identity()), ElementsAre("input"));
  write(folder_ / "in.fasta", ">a\nMK\n");
  EXPECT_THAT(different(before_, identity()), IsEmpty());

  write(folder_ / "model" / "tokenizer_config.json", "{\"legacy\": false}");
  EXPECT_THAT(different(before_, identity()), ElementsAre("tokenizer"));

  std::fstream weights(folder_ / "model" / "model.safetensors",
                       std::ios::in | std::ios::out | std::ios::binary);
  weights.seekp(-2, std::ios::end);  // in the last tensor: a norm of 64 numbers
  weights.put('\x7');
  weights.close();
  EXPECT_THAT(different(before_, identity()), testing::Contains("model"));
}

}  // namespace
}  // namespace quintet
