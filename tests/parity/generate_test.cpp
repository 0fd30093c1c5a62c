// Generating with whole models: the tokens are those of the original Python implementation, and the
// bits of the scores are the same whatever the devices, groups, places and pages. On every device
// named in QUINTET_TEST_DEVICES (device_pair.h).
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "backends/registry.h"
#include "core/error.h"
#include "core/json.h"
#include "device_pair.h"
#include "generation/generator.h"
#include "models/decoder.h"
#include "models/encoder.h"
#include "pipeline/ring.h"
#include "weights/checkpoint.h"

namespace quintet {
namespace {

namespace fs = std::filesystem;

struct Record {
  std::vector<int32_t> source;
  std::vector<int32_t> prompt;
  std::vector<std::vector<int32_t>> sequences;
  std::vector<double> scores;
};

struct Case {
  std::string name;
  GenerationConfig config;
  std::vector<Record> records;
};

std::vector<Case> read_cases(const std::string& model, const TokenIds& ids) {
  const nlohmann::json all =
      parse_json_file(fs::path(QUINTET_FIXTURES) / "generation" / "models.json");
  std::vector<Case> cases;
  for (const auto& json : all.at(model)) {
    Case& c = cases.emplace_back();
    c.name = json["name"];
    apply_generation_options(c.config, json["options"], c.name);
    c.config.eos_token_id = ids.eos;
    for (const auto& record : json["records"]) {
      c.records.push_back({.source = record["input_ids"],
                           .prompt = record["prompt"],
                           .sequences = record["sequences"],
                           .scores = record["scores"]});
    }
  }
  return cases;
}

// How a model is run.
struct Layout {
  size_t n_devices = 1;
  GeneratorOptions options;
};

using Param = std::tuple<std::string, std::string>;  // device, model

class GenerateParity : public testing::TestWithParam<Param> {
 protected:
  void SetUp() override {
    try {
      pair_ = open_pair(std::get<0>(GetParam()));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kDevice) throw;
      GTEST_SKIP() << error.what();
    }
    same_arithmetic_ = same_arithmetic(pair_);
    folder_ = fs::path(QUINTET_FIXTURES) / "decoders" / std::get<1>(GetParam());
    decoder_ = load_decoder_model(folder_);
    checkpoint_ = Checkpoint::open(folder_);
    if (decoder_->reads_encoder()) encoder_ = load_encoder_model(folder_);
  }

  // The decoder's two blocks on one device or two; the encoder's one on the last.
  std::vector<RingDevice> load(const Layout& layout,
                               std::vector<std::shared_ptr<Device>>& devices) {
    std::vector<RingDevice> parts(layout.n_devices);
    const int64_t n_blocks = decoder_->n_layers() / static_cast<int64_t>(layout.n_devices);
    for (size_t i = 0; i < parts.size(); ++i) {
      RingDevice& part = parts[i];
      devices.push_back(i == 0 ? pair_.first : pair_.second);
      part.device = devices.back().get();
      const auto first = static_cast<int64_t>(i) * n_blocks;
      part.decoder_range = {first, first + n_blocks};
      part.decoder = decoder_->load_stage(*checkpoint_, *part.device, part.decoder_range,
                                          DType::kFloat32, true);
      part.decoder->reserve(layout.options.pages);
    }
    if (encoder_) {
      RingDevice& part = parts.back();
      part.encoder_range = {0, encoder_->n_layers()};
      part.encoder =
          encoder_->load_stage(*checkpoint_, *part.device, part.encoder_range, DType::kFloat32);
    }
    return parts;
  }

  GenerationTask task(const Case& c, uint64_t ordinal) const {
    const Record& record = c.records[ordinal];
    GenerationTask task;
    task.ordinal = ordinal;
    task.source.tokens = record.source;
    task.prompt = record.prompt;
    task.search =
        make_search(c.config, {.ordinal = ordinal,
                               .prompt = record.prompt,
                               .encoder_input = encoder_ ? record.source : record.prompt,
                               .padded_prompt_length = static_cast<int64_t>(record.prompt.size()),
                               .max_positions = decoder_->max_positions(),
                               .vocab_size = decoder_->vocab_size(),
                               .decode = {}});
    return task;
  }

  std::map<uint64_t, GenerationResult> generate(const Layout& layout, const Case& c) {
    std::vector<std::shared_ptr<Device>> devices;
    Ring ring(load(layout, devices), {});
    std::map<uint64_t, GenerationResult> results;
    uint64_t next = 0;
    const std::atomic<bool> stop{false};
    GeneratorOptions options = layout.options;
    options.max_positions = decoder_->max_positions();
    Generator(ring, options)
        .run({.next = [&]() -> std::optional<GenerationTask> {
                if (next == c.records.size()) return std::nullopt;
                return task(c, next++);
              },
              .done =
                  [&](GenerationResult result) {
                    results.emplace(result.ordinal, std::move(result));
                  }},
             stop);
    return results;
  }

  DevicePair pair_;
  bool same_arithmetic_ = true;  // of both: not one bit differs
  fs::path folder_;
  std::unique_ptr<DecoderModel> decoder_;
  std::unique_ptr<EncoderModel> encoder_;
  std::shared_ptr<Checkpoint> checkpoint_;
};

const std::vector<Layout>& layouts() {
  static const std::vector<Layout> kLayouts = {
      {1, {.rows_per_group = 4, .pages = {.self = 12, .cross = 2}}},  // one record at a time
      {1, {.rows_per_group = 64, .pages = {.self = 200, .cross = 20}}},
      {2, {.n_groups = 2, .rows_per_group = 8, .pages = {.self = 60, .cross = 10}}},
      {2, {.n_groups = 3, .rows_per_group = 5, .pages = {.self = 30, .cross = 4}}},
  };
  return kLayouts;
}

TEST_P(GenerateParity, TokensOfTheOriginalAndEqualScores) {
  for (const Case& c : read_cases(std::get<1>(GetParam()), decoder_->token_ids())) {
    std::map<uint64_t, GenerationResult> first;
    for (const Layout& layout : layouts()) {
      const auto results = generate(layout, c);
      ASSERT_EQ(results.size(), c.records.size());
      if (first.empty()) first = results;
      for (const auto& [ordinal, result] : results) {
        const std::string where = c.name + " record " + std::to_string(ordinal);
        ASSERT_EQ(result.rejected, "") << where;
        const Record& record = c.records[ordinal];
        ASSERT_EQ(result.sequences.size(), record.sequences.size()) << where;
        for (size_t i = 0; i < record.sequences.size(); ++i) {
          EXPECT_EQ(result.sequences[i].ids, record.sequences[i]) << where;
          const auto score = first.at(ordinal).sequences[i].score;
          if (same_arithmetic_) {
            EXPECT_EQ(result.sequences[i].score, score) << where;
          }
          if (!record.scores.empty()) {
            EXPECT_NEAR(result.sequences[i].score, record.scores[i], 1e-4) << where;
          }
        }
      }
    }
  }
}

TEST_P(GenerateParity, EndsAtTheLastPosition) {
  if (decoder_->max_positions() == 0) return;  // the model has no last one
  for (const int64_t n_beams : {1, 3}) {
    Case c;
    c.name = "long";
    c.config.max_new_tokens = 1000;
    c.config.num_beams = n_beams;
    c.records.push_back({.source = {}, .prompt = {5, 9, 7}, .sequences = {}, .scores = {}});
    const auto results = generate(layouts()[1], c);
    ASSERT_EQ(results.at(0).rejected, "");
    const auto n_new = static_cast<int64_t>(results.at(0).sequences.at(0).ids.size());
    EXPECT_EQ(n_new, decoder_->max_positions() - 3 + 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, GenerateParity,
                         testing::Combine(testing::ValuesIn(pairs_under_test()),
                                          testing::Values("t5", "umt5", "gpt2")),
                         [](const testing::TestParamInfo<Param>& param) {
                           std::string name =
                               std::get<0>(param.param) + "_" + std::get<1>(param.param);
                           for (char& c : name) {
                             if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
                           }
                           return name;
                         });

}  // namespace
}  // namespace quintet
