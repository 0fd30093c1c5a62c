#include "models/t5.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "backends/cpu/cpu_device.h"
#include "backends/reference/reference_device.h"
#include "models/fake_checkpoint.h"
#include "quintet/error.h"

namespace quintet {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

json tiny(const std::string& type = "t5") {
  return {{"model_type", type}, {"vocab_size", 20}, {"d_model", 16},  {"d_kv", 4},
          {"d_ff", 24},         {"num_heads", 3},   {"num_layers", 3}};
}

MicroBatch batch_of(const std::vector<std::vector<int32_t>>& sequences) {
  MicroBatch batch;
  batch.cu_seqlens = {0};
  for (const auto& ids : sequences) {
    for (size_t i = 0; i < ids.size(); ++i) {
      batch.tokens.push_back(ids[i]);
      batch.positions.push_back(static_cast<int32_t>(i));
    }
    batch.max_len = std::max(batch.max_len, static_cast<int32_t>(ids.size()));
    batch.ordinals.push_back(batch.ordinals.size());
    batch.cu_seqlens.push_back(static_cast<int32_t>(batch.tokens.size()));
  }
  return batch;
}

struct Tiny {
  explicit Tiny(const json& config, DType dtype = DType::kFloat32)
      : model(make_t5_encoder(config, "config.json")) {
    add_encoder(checkpoint, parse_t5_config(config, "config.json"), dtype);
  }

  std::vector<float> encode(const MicroBatch& batch, const std::vector<int64_t>& splits = {},
                            DType dtype = DType::kFloat32) {
    ReferenceDevice device;
    return encode(device, batch, splits, dtype);
  }

  std::vector<float> encode(Device& device, const MicroBatch& batch,
                            const std::vector<int64_t>& splits = {},
                            DType dtype = DType::kFloat32) {
    Tensor hidden;
    int64_t first = 0;
    std::vector<int64_t> ends = splits;
    ends.push_back(model->n_layers());
    for (const int64_t end : ends) {
      hidden = model->load_stage(checkpoint, device, {first, end}, dtype)->forward(batch, hidden);
      first = end;
    }
    std::vector<float> values(static_cast<size_t>(hidden.rows() * hidden.cols()));
    device.download(hidden, values.data());
    return values;
  }

  std::string problem() {
    try {
      model->check(checkpoint);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kFile);
      return error.what();
    }
    return "";
  }

  std::unique_ptr<EncoderModel> model;
  FakeCheckpoint checkpoint;
};

const MicroBatch kBatch = batch_of({{5, 6, 7, 1}, {3, 1}});

TEST(T5Encoder, SplitsGiveTheSameBits) {
  for (const char* type : {"t5", "mt5", "umt5"}) {
    Tiny tiny_model(tiny(type));
    const auto whole = tiny_model.encode(kBatch);
    EXPECT_EQ(tiny_model.encode(kBatch, {1}), whole);
    EXPECT_EQ(tiny_model.encode(kBatch, {2}), whole);
    EXPECT_EQ(tiny_model.encode(kBatch, {1, 2}), whole);
  }
}

// Of three threads, each with a part of the batch.
class ThreeThreads : public ReferenceDevice {
 public:
  int64_t parts_wanted() const override { return 3; }
  void run_parts(int64_t n, const std::function<void(int64_t)>& part) override {
    n_parts = n;
    std::vector<std::thread> threads;
    for (int64_t i = 0; i < n; ++i) threads.emplace_back([&part, i] { part(i); });
    for (std::thread& thread : threads) thread.join();
  }
  int64_t n_parts = 0;
};

// 512 rows and fewer pass as one tile, more in several.
TEST(T5Encoder, PartsGiveTheSameBits) {
  for (const size_t n_seqs : {size_t{14}, size_t{30}}) {
    std::vector<std::vector<int32_t>> sequences(n_seqs);
    for (size_t s = 0; s < n_seqs; ++s) {
      for (size_t i = 0; i < 30 + s % 5; ++i) {
        sequences[s].push_back(static_cast<int32_t>((3 * s + i) % 19));
      }
    }
    const MicroBatch batch = batch_of(sequences);
    for (const char* type : {"t5", "umt5"}) {
      Tiny t(tiny(type));
      ThreeThreads parted;
      EXPECT_EQ(t.encode(parted, batch, {1}), t.encode(batch));
      EXPECT_EQ(parted.n_parts, 3);
      EXPECT_EQ(t.encode(parted, batch_of({sequences[0]})), t.encode(batch_of({sequences[0]})));
    }
  }
}

// In uMT5 the table of block 1 matters to block 1; T5 has none there.
TEST(T5Encoder, Umt5HasATablePerBlock) {
  const std::string name = "encoder.block.1.layer.0.SelfAttention.relative_attention_bias.weight";
  Tiny umt5(tiny("umt5"));
  const auto before = umt5.encode(kBatch, {1});
  umt5.checkpoint.add_random(name, {32, 3});
  EXPECT_NE(umt5.encode(kBatch, {1}), before);
  umt5.checkpoint.remove(name);
  EXPECT_THAT(umt5.problem(), HasSubstr(name));
}

TEST(T5Encoder, AbsentMaxDistanceIs128) {
  std::vector<int32_t> ids(200);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i % 19);
  const MicroBatch batch = batch_of({ids});
  json config = tiny();
  const auto absent = Tiny(config).encode(batch);
  config["relative_attention_max_distance"] = 128;
  EXPECT_EQ(Tiny(config).encode(batch), absent);
  config["relative_attention_max_distance"] = 16;
  EXPECT_NE(Tiny(config).encode(batch), absent);
}

TEST(T5Encoder, PadIdsCountUnlessLeftOut) {
  Tiny t(tiny());
  const auto alone = t.encode(batch_of({{5, 6, 7, 1}}));
  const auto padded = t.encode(batch_of({{5, 6, 7, 1, 0, 0}}));
  EXPECT_FALSE(std::equal(alone.begin(), alone.end(), padded.begin()));
}

TEST(T5Encoder, BatchWithoutTokensGivesNoRows) {
  Tiny t(tiny());
  EXPECT_THAT(t.encode(batch_of({{}})), IsEmpty());
  EXPECT_THAT(t.encode(batch_of({})), IsEmpty());
  // A sequence of which nothing is attended to leaves its neighbour alone.
  EXPECT_EQ(t.encode(batch_of({{}, {5, 6, 1}})), t.encode(batch_of({{5, 6, 1}})));
}

TEST(T5Encoder, TokenOutsideTheVocabularyIsTheRecordsFault) {
  Tiny t(tiny());
  for (const int32_t id : {20, -1}) {
    try {
      t.encode(batch_of({{3, id}}));
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kRecord);
      EXPECT_THAT(error.what(), HasSubstr(std::to_string(id)));
    }
  }
}

// float16 weights, float32 activations: what passes 65504 behind `wo` is still finite.
TEST(T5Encoder, LargeFeedForwardOutputStaysFinite) {
  json config = tiny();
  config["feed_forward_proj"] = "gated-gelu";
  Tiny t(config, DType::kFloat16);
  t.checkpoint.add("encoder.block.0.layer.1.DenseReluDense.wo.weight", {16, 24},
                   std::vector<float>(16 * 24, 60000), DType::kFloat16);
  for (const float value : t.encode(kBatch, {1}, DType::kFloat16)) {
    EXPECT_TRUE(std::isfinite(value));
  }
}

TEST(T5Encoder, EmbeddingStandsUnderAnyOfItsNames) {
  Tiny t(tiny());
  const auto expected = t.encode(kBatch);
  std::string at = "shared.weight";
  for (const std::string name : {"encoder.embed_tokens.weight", "decoder.embed_tokens.weight",
                                 "lm_head.weight", "shared.weight"}) {
    t.checkpoint.rename(at, name);
    at = name;
    EXPECT_EQ(t.encode(kBatch), expected) << name;
    EXPECT_THAT(t.model->check(t.checkpoint), IsEmpty()) << name;
  }
  // The index of some checkpoints lists names that no shard holds.
  t.checkpoint.promise("encoder.embed_tokens.weight", "model-00001-of-00002.safetensors");
  EXPECT_EQ(t.encode(kBatch), expected);
}

TEST(T5Encoder, PrefixesOfTheClassesThatSave) {
  Tiny t(tiny());
  const auto expected = t.encode(kBatch);
  t.checkpoint.prepend("transformer.");
  EXPECT_EQ(t.encode(kBatch), expected);
  t.checkpoint.add_random("classifier.weight", {2, 16});
  EXPECT_EQ(t.encode(kBatch), expected);
  EXPECT_THAT(t.model->check(t.checkpoint), ElementsAre(HasSubstr("classifier.weight")));
}

TEST(T5Encoder, StackSavedAlone) {
  Tiny t(tiny());
  const auto expected = t.encode(kBatch);
  t.checkpoint.rename("shared.weight", "encoder.embed_tokens.weight");
  FakeCheckpoint alone;
  for (const auto& [name, view] : t.checkpoint.tensors()) {
    std::vector<float> values(static_cast<size_t>(view.rows() * view.cols()));
    widen(view.data, view.dtype, values.size(), values.data());
    alone.add(name.substr(std::string("encoder.").size()), view.shape, values);
  }
  ReferenceDevice device;
  const auto stage = t.model->load_stage(alone, device, {0, 3}, DType::kFloat32);
  std::vector<float> got(expected.size());
  device.download(stage->forward(kBatch, {}), got.data());
  EXPECT_EQ(got, expected);
}

TEST(T5Encoder, DecoderIsLeftAloneAndOddTensorsAreNoted) {
  Tiny t(tiny());
  t.checkpoint.add_random("decoder.block.0.layer.0.SelfAttention.q.weight", {12, 16});
  t.checkpoint.add_random("lm_head.weight", {20, 16});
  EXPECT_THAT(t.model->check(t.checkpoint), IsEmpty());
  const std::string odd = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight";
  t.checkpoint.add_random(odd, {32, 3});
  EXPECT_THAT(t.model->check(t.checkpoint), ElementsAre(HasSubstr(odd)));
}

TEST(T5Encoder, TensorOfAnotherShapeIsNamed) {
  Tiny t(tiny());
  t.checkpoint.add_random("encoder.block.2.layer.0.SelfAttention.q.weight", {16, 16});
  EXPECT_THAT(t.problem(), HasSubstr("'encoder.block.2.layer.0.SelfAttention.q.weight' is "
                                     "[16, 16], config.json implies [12, 16]"));
}

TEST(T5Encoder, MissingTensorIsNamedWithItsShard) {
  Tiny t(tiny());
  const std::string name = "encoder.block.1.layer.1.DenseReluDense.wo.weight";
  t.checkpoint.remove(name);
  EXPECT_THAT(t.problem(), HasSubstr(name));
  t.checkpoint.promise(name, "model-00002-of-00002.safetensors");
  EXPECT_THAT(t.problem(), HasSubstr("model-00002-of-00002.safetensors"));
}

TEST(T5Encoder, StoredDTypeIsThatOfTheMatrices) {
  EXPECT_EQ(
      Tiny(tiny(), DType::kFloat16).model->stored_dtype(Tiny(tiny(), DType::kFloat16).checkpoint),
      DType::kFloat16);
  Tiny mixed(tiny(), DType::kBFloat16);
  EXPECT_EQ(mixed.model->stored_dtype(mixed.checkpoint), DType::kBFloat16);
  mixed.checkpoint.add_random("encoder.block.0.layer.1.DenseReluDense.wo.weight", {16, 24});
  EXPECT_EQ(mixed.model->stored_dtype(mixed.checkpoint), DType::kFloat32);
}

TEST(T5Encoder, CostCountsEveryWeight) {
  for (const char* type : {"t5", "umt5"}) {
    Tiny t(tiny(type));
    const StackCost cost = t.model->cost(DType::kFloat32);
    int64_t bytes = cost.first_bytes + cost.last_bytes + cost.per_stage_bytes;
    for (const auto& block : cost.blocks) bytes += block.weight_bytes;
    int64_t stored = 0;
    for (const auto& [name, view] : t.checkpoint.tensors()) {
      stored += view.rows() * static_cast<int64_t>(view.row_bytes());
    }
    EXPECT_EQ(bytes, stored) << type;
    EXPECT_EQ(cost.blocks.size(), 3U);
  }
}

// What the cost says of activations is what a device sees, in tiles and below one tile.
TEST(T5Encoder, ActivationBytesAreExact) {
  for (const char* type : {"t5", "umt5"}) {
    Tiny t(tiny(type));
    const StackCost cost = t.model->cost(DType::kFloat32);
    for (const int32_t length : {64, 1280}) {
      CpuDeviceOptions one_thread;
      one_thread.name = "cpu:0";
      one_thread.threads = 1;
      CpuDevice device(one_thread);
      const auto stage = t.model->load_stage(t.checkpoint, device, {0, 3}, DType::kFloat32);
      const size_t weights = device.memory().used;
      stage->forward(batch_of({std::vector<int32_t>(static_cast<size_t>(length), 4)}), {});
      double per_len = cost.activation_bytes_per_max_len;
      for (const auto& block : cost.blocks) per_len += block.activation_bytes_per_max_len;
      const double planned =
          cost.activation_bytes_per_token * length + per_len * length +
          cost.activation_bytes_per_tile_row * std::min<double>(length, cost.tile_rows);
      EXPECT_NEAR(static_cast<double>(device.memory().peak - weights), planned, 0.03 * planned);
    }
  }
}

TEST(T5Encoder, StagesOfNoBlocksAreRefused) {
  Tiny t(tiny());
  ReferenceDevice device;
  for (const StageRange range : {StageRange{0, 0}, {-1, 2}, {2, 4}, {2, 1}}) {
    EXPECT_THROW(t.model->load_stage(t.checkpoint, device, range, DType::kFloat32), Error);
  }
  const auto last = t.model->load_stage(t.checkpoint, device, {1, 3}, DType::kFloat32);
  EXPECT_THROW(last->forward(kBatch, {}), Error);
}

}  // namespace
}  // namespace quintet
