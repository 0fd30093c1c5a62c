// Encoders against stored outputs of the original Python models, on every device named in
// QUINTET_TEST_DEVICES (device_pair.h): whole, split over two devices (the same bits), and block by
// block. QUINTET_PARITY_FIXTURES names another folder made by make_fixtures.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "backends/registry.h"
#include "core/error.h"
#include "core/json.h"
#include "device_pair.h"
#include "models/encoder.h"
#include "weights/checkpoint.h"

namespace quintet {
namespace {

namespace fs = std::filesystem;

// Norm of the difference over norm, of one sequence's rows.
constexpr double kTolerance = 5e-6;
constexpr double kMixedTolerance = 1e-5;  // of devices of which one does not divide exactly

std::string environment(const char* name, const std::string& otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

fs::path fixtures() {
  return environment("QUINTET_PARITY_FIXTURES", std::string(QUINTET_FIXTURES) + "/models");
}

std::vector<std::string> folders() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(fixtures())) {
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// One check of cases.json as a micro-batch, and where its rows stand in the stored outputs.
struct Case {
  std::string name;
  MicroBatch batch;
  std::vector<std::pair<int64_t, int64_t>> origin;  // [n_tokens], (row of the batch, time)
};

Case read_case(const nlohmann::json& json) {
  Case c{.name = json["name"], .batch = {}, .origin = {}};
  c.batch.cu_seqlens = {0};
  const auto ids = json["input_ids"].get<std::vector<std::vector<int32_t>>>();
  std::vector<std::vector<int>> mask;
  if (!json["attention_mask"].is_null()) json["attention_mask"].get_to(mask);
  for (size_t row = 0; row < ids.size(); ++row) {
    for (size_t time = 0; time < ids[row].size(); ++time) {
      if (!mask.empty() && mask[row][time] == 0) continue;
      c.batch.tokens.push_back(ids[row][time]);
      c.batch.positions.push_back(static_cast<int32_t>(time));
      c.batch.max_len = std::max(c.batch.max_len, static_cast<int32_t>(time) + 1);
      c.origin.emplace_back(row, time);
    }
    c.batch.cu_seqlens.push_back(static_cast<int32_t>(c.batch.tokens.size()));
    c.batch.ordinals.push_back(row);
  }
  return c;
}

// Element (row, time) of a stored [batch, time, d_model], or of one layer of
// [layers, batch, time, d_model].
const float* stored_row(const HostView& view, int64_t layer, std::pair<int64_t, int64_t> at) {
  const auto n = view.shape.size();
  const int64_t index =
      ((layer * view.shape[n - 3] + at.first) * view.shape[n - 2] + at.second) * view.shape[n - 1];
  return reinterpret_cast<const float*>(view.data) + index;
}

// The worst of the batch's sequences.
double error_of(const Case& c, const std::vector<float>& got, const HostView& want, int64_t layer) {
  const int64_t d_model = want.shape.back();
  double worst = 0;
  for (size_t s = 0; s + 1 < c.batch.cu_seqlens.size(); ++s) {
    double difference = 0;
    double norm = 0;
    for (int64_t row = c.batch.cu_seqlens[s]; row < c.batch.cu_seqlens[s + 1]; ++row) {
      const float* expected = stored_row(want, layer, c.origin[static_cast<size_t>(row)]);
      for (int64_t j = 0; j < d_model; ++j) {
        const double delta = double{got[static_cast<size_t>(row * d_model + j)]} - expected[j];
        difference += delta * delta;
        norm += double{expected[j]} * expected[j];
      }
    }
    if (norm == 0 && difference == 0) continue;
    const double error = std::sqrt(difference / norm);
    worst = error <= worst ? worst : error;  // a NaN stays
  }
  return worst;
}

std::vector<float> values_of(Device& device, const Tensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.rows() * tensor.cols()));
  device.download(tensor, values.data());
  return values;
}

Tensor move_to(Device& to, Device& from, const Tensor& tensor) {
  const std::vector<float> values = values_of(from, tensor);
  Tensor moved = to.allocate(tensor.rows(), tensor.cols());
  to.upload(values.data(), moved);
  return moved;
}

struct Stage {
  std::shared_ptr<Device> device;
  std::unique_ptr<EncoderStage> stage;
};

std::vector<float> run(std::vector<Stage>& stages, const MicroBatch& batch,
                       std::vector<std::vector<float>>* after_each = nullptr) {
  Tensor hidden;
  Device* at = nullptr;
  for (Stage& stage : stages) {
    if (at != nullptr && at != stage.device.get()) hidden = move_to(*stage.device, *at, hidden);
    at = stage.device.get();
    hidden = stage.stage->forward(batch, std::move(hidden));
    if (after_each != nullptr) after_each->push_back(values_of(*at, hidden));
  }
  return values_of(*at, hidden);
}

class Parity : public testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  void SetUp() override {
    const fs::path folder = fixtures() / std::get<1>(GetParam());
    DevicePair pair;
    try {
      pair = open_pair(std::get<0>(GetParam()));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kDevice) throw;
      GTEST_SKIP() << error.what();
    }
    first_ = pair.first;
    second_ = pair.second;
    same_arithmetic_ = same_arithmetic(pair);
    model_ = load_encoder_model(folder);
    checkpoint_ = Checkpoint::open(folder);
    expected_ = Checkpoint::open(folder / "expected");
    for (const auto& json : parse_json_file(folder / "cases.json")) {
      cases_.push_back(read_case(json));
    }
  }

  Stage stage(const std::shared_ptr<Device>& device, int64_t first, int64_t last) {
    return {device, model_->load_stage(*checkpoint_, *device, {first, last}, DType::kFloat32)};
  }

  std::shared_ptr<Device> first_;
  std::shared_ptr<Device> second_;
  bool same_arithmetic_ = true;  // of both: not one bit differs
  std::unique_ptr<EncoderModel> model_;
  std::unique_ptr<Checkpoint> checkpoint_;
  std::unique_ptr<Checkpoint> expected_;
  std::vector<Case> cases_;
};

TEST_P(Parity, LastHiddenStateMatchesWholeAndSplit) {
  const int64_t n = model_->n_layers();
  model_->check(*checkpoint_);
  std::vector<Stage> whole;
  whole.push_back(stage(first_, 0, n));
  std::vector<Stage> split;
  split.push_back(stage(first_, 0, n / 2));
  split.push_back(stage(second_, n / 2, n));
  double worst = 0;
  for (const Case& c : cases_) {
    const std::vector<float> got = run(whole, c.batch);
    const double error = error_of(c, got, *expected_->find(c.name + ".last_hidden_state"), 0);
    EXPECT_LE(error, kTolerance) << c.name;
    worst = std::max(worst, error);
    const std::vector<float> parts = run(split, c.batch);
    if (same_arithmetic_) {
      EXPECT_EQ(parts, got) << c.name;
    } else {
      const double mixed = error_of(c, parts, *expected_->find(c.name + ".last_hidden_state"), 0);
      EXPECT_LE(mixed, kMixedTolerance) << c.name;
    }
  }
  RecordProperty("worst", std::to_string(worst * 1e6) + "e-6");
}

// Each sequence alone gives the bits that it has in the batch.
TEST_P(Parity, SequencesDoNotSeeTheirBatch) {
  std::vector<Stage> whole;
  whole.push_back(stage(first_, 0, model_->n_layers()));
  const auto d_model = static_cast<size_t>(model_->d_model());
  for (const Case& c : cases_) {
    const std::vector<float> together = run(whole, c.batch);
    for (size_t s = 0; s + 1 < c.batch.cu_seqlens.size(); ++s) {
      const auto begin = static_cast<size_t>(c.batch.cu_seqlens[s]);
      const auto end = static_cast<size_t>(c.batch.cu_seqlens[s + 1]);
      MicroBatch alone;
      alone.tokens.assign(c.batch.tokens.begin() + begin, c.batch.tokens.begin() + end);
      alone.positions.assign(c.batch.positions.begin() + begin, c.batch.positions.begin() + end);
      alone.cu_seqlens = {0, static_cast<int32_t>(end - begin)};
      alone.ordinals = {0};
      alone.max_len = begin == end ? 0 : alone.positions.back() + 1;
      const std::vector<float> got = run(whole, alone);
      ASSERT_EQ(got.size(), (end - begin) * d_model);
      EXPECT_TRUE(std::equal(got.begin(), got.end(), together.begin() + begin * d_model))
          << c.name << " sequence " << s;
    }
  }
}

TEST_P(Parity, EveryBlockMatches) {
  std::vector<Stage> stages;
  for (int64_t block = 0; block < model_->n_layers(); ++block) {
    stages.push_back(stage(block % 2 == 0 ? first_ : second_, block, block + 1));
  }
  for (const Case& c : cases_) {
    const HostView* states = expected_->find(c.name + ".hidden_states");
    if (states == nullptr) continue;
    ASSERT_EQ(states->shape[0], model_->n_layers() + 1);
    std::vector<std::vector<float>> after_each;
    run(stages, c.batch, &after_each);
    for (size_t block = 0; block < after_each.size(); ++block) {
      const auto layer = static_cast<int64_t>(block) + 1;  // 0: the embeddings
      EXPECT_LE(error_of(c, after_each[block], *states, layer), kTolerance) << "block " << block;
    }
  }
}

std::string name_of_case(const testing::TestParamInfo<Parity::ParamType>& info) {
  std::string name = std::get<0>(info.param) + "_" + std::get<1>(info.param);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Encoders, Parity,
                         testing::Combine(testing::ValuesIn(pairs_under_test()),
                                          testing::ValuesIn(folders())),
                         name_of_case);

}  // namespace
}  // namespace quintet
