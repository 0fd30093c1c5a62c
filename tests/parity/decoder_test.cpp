// Decoders against stored outputs of the original Python models, on every device named in
// QUINTET_TEST_DEVICES (device_pair.h): whole, split over two devices, and token by
// token through the caches (the same bits). QUINTET_DECODER_FIXTURES names another folder made by
// make_decoders.py.
#include "models/decoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "backends/registry.h"
#include "core/error.h"
#include "core/json.h"
#include "device_pair.h"
#include "models/encoder.h"
#include "models/step_maker.h"
#include "weights/checkpoint.h"

namespace quintet {
namespace {

namespace fs = std::filesystem;

// Norm of the difference over norm, of one sequence's rows.
constexpr double kTolerance = 5e-6;
constexpr double kMixedTolerance = 1e-5;  // of devices of which one does not divide exactly
constexpr CachePages kPages{.self = 64, .cross = 32};

std::string environment(const char* name, const std::string& otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

fs::path fixtures() {
  return environment("QUINTET_DECODER_FIXTURES", std::string(QUINTET_FIXTURES) + "/decoders");
}

std::vector<std::string> folders() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(fixtures())) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// A row of a batch without its padding: tokens and where they stand.
struct Tokens {
  std::vector<int32_t> ids;
  std::vector<int32_t> positions;
  std::vector<int64_t> times;  // columns of the batch

  bool has_holes() const {
    for (size_t i = 0; i < positions.size(); ++i) {
      if (positions[i] != static_cast<int32_t>(i)) return true;
    }
    return false;
  }
};

struct Row {
  Tokens source;  // none where the model has no encoder
  Tokens target;
};

struct Case {
  std::string name;
  std::vector<Row> rows;
};

Tokens read_tokens(const nlohmann::json& ids, const nlohmann::json& mask,
                   const nlohmann::json& positions, size_t row) {
  Tokens tokens;
  if (ids.is_null()) return tokens;
  for (size_t time = 0; time < ids[row].size(); ++time) {
    if (!mask.is_null() && mask[row][time] == 0) continue;
    tokens.ids.push_back(ids[row][time]);
    tokens.positions.push_back(positions.is_null() ? static_cast<int32_t>(time)
                                                   : positions[row][time].get<int32_t>());
    tokens.times.push_back(static_cast<int64_t>(time));
  }
  return tokens;
}

Case read_case(const nlohmann::json& json) {
  Case c{.name = json["name"], .rows = {}};
  const bool seq2seq = !json["decoder_input_ids"].is_null();
  for (size_t row = 0; row < json["input_ids"].size(); ++row) {
    const Tokens first =
        read_tokens(json["input_ids"], json["attention_mask"], json["position_ids"], row);
    if (seq2seq) {
      c.rows.push_back({first, read_tokens(json["decoder_input_ids"],
                                           json["decoder_attention_mask"], nullptr, row)});
    } else {
      c.rows.push_back({{}, first});
    }
  }
  return c;
}

MicroBatch sources_of(const std::vector<Row>& rows) {
  MicroBatch batch;
  batch.cu_seqlens = {0};
  for (const Row& row : rows) {
    const Tokens& source = row.source;
    batch.tokens.insert(batch.tokens.end(), source.ids.begin(), source.ids.end());
    batch.positions.insert(batch.positions.end(), source.positions.begin(), source.positions.end());
    for (const int32_t position : source.positions) {
      batch.max_len = std::max(batch.max_len, position + 1);
    }
    batch.cu_seqlens.push_back(static_cast<int32_t>(batch.tokens.size()));
    batch.ordinals.push_back(batch.ordinals.size());
  }
  return batch;
}

std::vector<float> values_of(Device& device, const Tensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.rows() * tensor.cols()));
  device.download(tensor, values.data());
  return values;
}

Tensor move_to(Device& to, Device& from, const Tensor& tensor) {
  if (&to == &from || !tensor) return tensor;
  const std::vector<float> values = values_of(from, tensor);
  Tensor moved = to.allocate(tensor.rows(), tensor.cols());
  to.upload(values.data(), moved);
  return moved;
}

struct Stage {
  std::shared_ptr<Device> device;
  std::unique_ptr<DecoderStage> stage;
};

using Values = std::vector<float>;

class DecoderParity : public testing::TestWithParam<std::tuple<std::string, std::string>> {
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
    model_ = load_decoder_model(folder);
    checkpoint_ = Checkpoint::open(folder);
    expected_ = Checkpoint::open(folder / "expected");
    for (const auto& json : parse_json_file(folder / "cases.json")) {
      cases_.push_back(read_case(json));
    }
    with_head_ = expected_->find(cases_.front().name + ".logits") != nullptr;
    model_->check(*checkpoint_, with_head_);
    if (!model_->reads_encoder()) return;
    const auto encoder = load_encoder_model(folder);
    encoder_ =
        encoder->load_stage(*checkpoint_, *first_, {0, encoder->n_layers()}, DType::kFloat32);
  }

  Stage stage(const std::shared_ptr<Device>& device, int64_t first, int64_t last) {
    Stage stage{device, model_->load_stage(*checkpoint_, *device, {first, last}, DType::kFloat32,
                                           with_head_)};
    stage.stage->reserve(kPages);
    return stage;
  }

  std::vector<Stage> whole() {
    std::vector<Stage> stages;
    stages.push_back(stage(first_, 0, model_->n_layers()));
    return stages;
  }

  std::vector<Stage> split() {
    std::vector<Stage> stages;
    stages.push_back(stage(first_, 0, model_->n_layers() / 2));
    stages.push_back(stage(second_, model_->n_layers() / 2, model_->n_layers()));
    return stages;
  }

  Tensor encode(const std::vector<Row>& rows) {
    return encoder_ ? encoder_->forward(sources_of(rows), {}) : Tensor();
  }

  // Of each selected row: its logits, or its hidden state without a head.
  std::vector<Values> run(std::vector<Stage>& stages, const StepBatch& step, const Tensor& source) {
    Tensor hidden;
    Device* at = first_.get();
    for (Stage& stage : stages) {
      Device& device = *stage.device;
      hidden = stage.stage->forward(step, move_to(device, *first_, source),
                                    move_to(device, *at, hidden));
      at = &device;
    }
    if (with_head_) hidden = stages.back().stage->logits(hidden, step.selected);
    const Values all = values_of(*at, hidden);
    std::vector<Values> rows;
    for (auto row = all.begin(); row != all.end(); row += hidden.cols()) {
      rows.emplace_back(row, row + hidden.cols());
    }
    return rows;
  }

  // Each row's targets as one prompt, all rows in one step: rows, each one value vector per token.
  std::vector<std::vector<Values>> teach(std::vector<Stage>& stages, const std::vector<Row>& rows) {
    StepMaker maker;
    for (const Row& row : rows) {
      const size_t sequence = maker.start(static_cast<int32_t>(row.source.ids.size()));
      maker.prompt(sequence, row.target.ids, false, row.target.positions);
    }
    return share_out(run(stages, maker.take(), encode(rows)), rows);
  }

  // The first token of each row as a prompt, the others one at a time through the caches.
  std::vector<std::vector<Values>> walk(std::vector<Stage>& stages, const std::vector<Row>& rows) {
    StepMaker maker;
    size_t longest = 0;
    for (const Row& row : rows) {
      const size_t sequence = maker.start(static_cast<int32_t>(row.source.ids.size()));
      maker.prompt(sequence, {row.target.ids.front()});
      longest = std::max(longest, row.target.ids.size());
    }
    std::vector<std::vector<Values>> got;
    for (const Values& values : run(stages, maker.take(), encode(rows))) got.push_back({values});
    for (size_t time = 1; time < longest; ++time) {
      std::vector<size_t> under_way;
      for (size_t row = 0; row < rows.size(); ++row) {
        if (time >= rows[row].target.ids.size()) continue;
        maker.step(row, rows[row].target.ids[time]);
        under_way.push_back(row);
      }
      const auto values = run(stages, maker.take(), {});
      for (size_t i = 0; i < under_way.size(); ++i) got[under_way[i]].push_back(values[i]);
    }
    return got;
  }

  static std::vector<std::vector<Values>> share_out(const std::vector<Values>& values,
                                                    const std::vector<Row>& rows) {
    std::vector<std::vector<Values>> shared;
    auto at = values.begin();
    for (const Row& row : rows) {
      const auto end = at + static_cast<int64_t>(row.target.ids.size());
      shared.emplace_back(at, end);
      at = end;
    }
    return shared;
  }

  // The worst of a case's rows.
  double error_of(const Case& c, const std::vector<std::vector<Values>>& got) {
    const HostView& want =
        *expected_->find(c.name + (with_head_ ? ".logits" : ".last_hidden_state"));
    const int64_t n_times = want.shape[1];
    const int64_t width = want.shape[2];
    const auto* stored = reinterpret_cast<const float*>(want.data);
    double worst = 0;
    for (size_t row = 0; row < c.rows.size(); ++row) {
      double difference = 0;
      double norm = 0;
      for (size_t i = 0; i < got[row].size(); ++i) {
        const int64_t at = static_cast<int64_t>(row) * n_times + c.rows[row].target.times[i];
        for (int64_t j = 0; j < width; ++j) {
          const double wanted = stored[at * width + j];
          const double delta = got[row][i][static_cast<size_t>(j)] - wanted;
          difference += delta * delta;
          norm += wanted * wanted;
        }
      }
      const double error = std::sqrt(difference / norm);
      worst = error <= worst ? worst : error;  // a NaN stays
    }
    return worst;
  }

  std::shared_ptr<Device> first_;
  std::shared_ptr<Device> second_;
  bool same_arithmetic_ = true;  // of both: not one bit differs
  std::unique_ptr<DecoderModel> model_;
  std::unique_ptr<Checkpoint> checkpoint_;
  std::unique_ptr<Checkpoint> expected_;
  std::unique_ptr<EncoderStage> encoder_;
  std::vector<Case> cases_;
  bool with_head_ = true;
};

TEST_P(DecoderParity, TeacherForcingMatchesWholeAndSplit) {
  auto one = whole();
  auto two = split();
  double worst = 0;
  for (const Case& c : cases_) {
    const auto got = teach(one, c.rows);
    const double error = error_of(c, got);
    EXPECT_LE(error, kTolerance) << c.name;
    worst = std::max(worst, error);
    const auto parts = teach(two, c.rows);
    if (same_arithmetic_) {
      EXPECT_EQ(parts, got) << c.name;
    } else {
      EXPECT_LE(error_of(c, parts), kMixedTolerance) << c.name;
    }
    for (size_t row = 0; row < c.rows.size(); ++row) {
      EXPECT_EQ(teach(one, {c.rows[row]}).front(), got[row]) << c.name << " row " << row;
    }
  }
  RecordProperty("worst", std::to_string(worst * 1e6) + "e-6");
}

// What the caches hold stands for the prompt's own keys, bit for bit.
TEST_P(DecoderParity, TokenByTokenGivesTheSameBits) {
  auto one = whole();
  auto two = split();
  for (const Case& c : cases_) {
    const bool holes = std::any_of(c.rows.begin(), c.rows.end(), [](const Row& row) {
      return row.target.ids.empty() || row.target.has_holes();
    });
    if (holes) continue;
    const auto prompt_wise = teach(one, c.rows);
    EXPECT_EQ(walk(one, c.rows), prompt_wise) << c.name;
    EXPECT_EQ(walk(two, c.rows), teach(two, c.rows)) << c.name;
    if (same_arithmetic_) {
      EXPECT_EQ(walk(two, c.rows), prompt_wise) << c.name;
    }
  }
}

std::string name_of_case(const testing::TestParamInfo<DecoderParity::ParamType>& info) {
  std::string name = std::get<0>(info.param) + "_" + std::get<1>(info.param);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Decoders, DecoderParity,
                         testing::Combine(testing::ValuesIn(pairs_under_test()),
                                          testing::ValuesIn(folders())),
                         name_of_case);

}  // namespace
}  // namespace quintet
