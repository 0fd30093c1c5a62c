// What every decoder promises: a row's logits do not depend on how its tokens came, on the rows
// beside it, or on where its keys lie.
#include "models/decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <numeric>

#include "backends/cpu/cpu_device.h"
#include "backends/reference/reference_device.h"
#include "models/decoder_run.h"
#include "models/fake_checkpoint.h"
#include "quintet/error.h"

namespace quintet {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr int32_t kVocabulary = 20;

std::unique_ptr<Device> make_test_device(const std::string& kind) {
  if (kind == "reference") return std::make_unique<ReferenceDevice>();
  CpuDeviceOptions options;
  options.name = "cpu:0";
  options.threads = 1;
  return std::make_unique<CpuDevice>(options);
}

json config_of(const std::string& type) {
  if (type == "gpt2") {
    return {{"model_type", type}, {"vocab_size", kVocabulary},
            {"n_positions", 700}, {"n_embd", 16},
            {"n_inner", 24},      {"n_head", 2},
            {"n_layer", 3}};
  }
  return {{"model_type", type},
          {"vocab_size", kVocabulary},
          {"d_model", 16},
          {"d_kv", 4},
          {"d_ff", 24},
          {"num_heads", 3},
          {"num_layers", 1},
          {"num_decoder_layers", 3},
          {"relative_attention_num_buckets", 8},
          {"relative_attention_max_distance", 8}};
}

// `n` tokens that differ from seed to seed.
std::vector<int32_t> tokens_of(int32_t n, int32_t seed) {
  std::vector<int32_t> tokens(static_cast<size_t>(n));
  for (int32_t i = 0; i < n; ++i) tokens[i] = (seed * 7 + i * i * 3 + i) % kVocabulary;
  return tokens;
}

class AnyDecoder : public testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  void SetUp() override {
    const json config = config_of(std::get<1>(GetParam()));
    device_ = make_test_device(std::get<0>(GetParam()));
    model_ = make_decoder_model(config, "config.json");
    if (model_->reads_encoder()) {
      add_decoder(checkpoint_, parse_t5_config(config, "config.json"));
    } else {
      add_gpt2(checkpoint_, parse_gpt2_config(config, "config.json"));
    }
  }

  DecoderRun run(std::vector<int64_t> ends = {}) const {
    return {*model_, checkpoint_, *device_, std::move(ends)};
  }

  // Where the model has an encoder, a source of `n` rows that goes with the sequence of that seed.
  size_t start(StepMaker& maker, int32_t n, int32_t seed) {
    if (!model_->reads_encoder()) return maker.start();
    for (int32_t i = 0; i < n; ++i) sources_.push_back(100 * seed + i);
    return maker.start(n);
  }
  std::vector<int32_t> sources() { return std::exchange(sources_, {}); }

  // Logits of the whole sequence as one prompt that nothing is kept of.
  std::vector<Values> prompt_wise(const std::vector<int32_t>& tokens, int32_t n, int32_t seed) {
    DecoderRun run = this->run();  // with caches of its own
    StepMaker maker;
    maker.prompt(start(maker, n, seed), tokens, false);
    const auto sources = this->sources();
    return run(maker.take(), sources);
  }

  std::unique_ptr<Device> device_;
  std::unique_ptr<DecoderModel> model_;
  FakeCheckpoint checkpoint_;
  std::vector<int32_t> sources_;
};

TEST_P(AnyDecoder, FortyTokensOneByOneAreTheirPrompt) {
  const auto tokens = tokens_of(40, 3);
  auto whole = run();
  const auto expected = prompt_wise(tokens, 30, 3);
  auto split = run({1});
  for (DecoderRun* run : {&whole, &split}) {
    StepMaker maker;
    const size_t sequence = start(maker, 30, 3);
    maker.prompt(sequence, {tokens[0], tokens[1]});
    const auto sources = this->sources();
    std::vector<Values> got = (*run)(maker.take(), sources);
    for (size_t i = 2; i < tokens.size(); ++i) {
      maker.step(sequence, tokens[i]);
      got.push_back((*run)(maker.take())[0]);
    }
    EXPECT_EQ(got, expected);
  }
}

TEST_P(AnyDecoder, RowsOfAStepDoNotSeeEachOther) {
  auto run = this->run();
  const auto first = tokens_of(26, 1);
  const auto second = tokens_of(9, 2);
  const auto third = tokens_of(5, 4);
  StepMaker maker;
  const size_t a = start(maker, 7, 1);
  maker.prompt(a, {first.begin(), first.end() - 1});
  run(maker.take(), sources());

  // A sequence under way, one that begins, and one that nothing is kept of.
  const size_t b = start(maker, 25, 2);
  const size_t c = start(maker, 1, 4);
  maker.prompt(b, second);
  maker.prompt(c, third, false);
  maker.step(a, first.back());
  const auto got = run(maker.take(), sources());
  ASSERT_EQ(got.size(), second.size() + third.size() + 1);
  const auto of_b = prompt_wise(second, 25, 2);
  EXPECT_TRUE(std::equal(of_b.begin(), of_b.end(), got.begin()));
  const auto of_c = prompt_wise(third, 1, 4);
  EXPECT_TRUE(std::equal(of_c.begin(), of_c.end(), got.begin() + 9));
  EXPECT_EQ(got.back(), prompt_wise(first, 7, 1).back());
}

// Beams leave their parent in the middle of a page, at its end, and once more later.
TEST_P(AnyDecoder, ForksShareAndCopyPages) {
  for (const int32_t length : {10, 24, 30}) {
    auto run = this->run();
    const auto prefix = tokens_of(length, 5);
    StepMaker maker;
    const size_t parent = start(maker, 6, 5);
    maker.prompt(parent, prefix);
    run(maker.take(), sources());
    const size_t beam = maker.fork(parent);
    maker.step(parent, 3);
    maker.step(beam, 4);
    run(maker.take());
    const size_t grandchild = maker.fork(beam);
    maker.step(parent, 5);
    maker.step(beam, 6);
    maker.step(grandchild, 7);
    const auto got = run(maker.take());
    const auto expected = [&](const std::vector<int32_t>& behind) {
      auto tokens = prefix;
      tokens.insert(tokens.end(), behind.begin(), behind.end());
      return prompt_wise(tokens, 6, 5).back();
    };
    EXPECT_EQ(got[0], expected({3, 5})) << length;
    EXPECT_EQ(got[1], expected({4, 6})) << length;
    EXPECT_EQ(got[2], expected({4, 7})) << length;
  }
}

// More rows than a tile holds, the border between prompts and single rows inside of one.
TEST_P(AnyDecoder, StepsOfSeveralTiles) {
  auto run = this->run();
  const auto first = tokens_of(30, 1);
  const auto second = tokens_of(640, 2);
  StepMaker maker;
  const size_t a = start(maker, 3, 1);
  maker.prompt(a, {first.begin(), first.end() - 1});
  run(maker.take(), sources());
  const size_t b = start(maker, 600, 2);
  maker.prompt(b, second);
  maker.step(a, first.back());
  const auto got = run(maker.take(), sources());
  EXPECT_EQ(got.back(), prompt_wise(first, 3, 1).back());
  maker.step(b, 11);
  auto longer = second;
  longer.push_back(11);
  EXPECT_EQ(run(maker.take())[0], prompt_wise(longer, 600, 2).back());
}

TEST_P(AnyDecoder, StepWithoutRowsKeepsItsSources) {
  auto run = this->run({2});
  StepMaker maker;
  const size_t sequence = start(maker, 40, 6);
  EXPECT_TRUE(run(maker.take(), sources()).empty());
  maker.prompt(sequence, {1, 2, 3});
  EXPECT_EQ(run(maker.take()), prompt_wise({1, 2, 3}, 40, 6));
}

TEST_P(AnyDecoder, SelectedRowsAlone) {
  auto run = this->run();
  const auto tokens = tokens_of(6, 8);
  const auto all = prompt_wise(tokens, 4, 8);
  StepMaker maker;
  maker.prompt(start(maker, 4, 8), tokens, false);
  StepBatch step = maker.take();
  step.selected = {1, 4};
  EXPECT_EQ(run(step, sources()), (std::vector<Values>{all[1], all[4]}));
}

TEST_P(AnyDecoder, WhatAStepLacksIsSaid) {
  const auto kind_of = [&](const CachePages& pages, auto&& make) {
    DecoderRun run(*model_, checkpoint_, *device_, {}, pages);
    StepMaker maker;
    make(maker, start(maker, 2, 1));
    try {
      run(maker.take(), sources());
    } catch (const Error& error) {
      return error.kind();
    }
    return ErrorKind::kFile;
  };
  const CachePages some{.self = 1, .cross = 1};
  const auto single = [](StepMaker& maker, size_t sequence) { maker.step(sequence, 1); };
  EXPECT_EQ(kind_of({.self = 0, .cross = 1}, single), ErrorKind::kUsage);
  // The slot is behind the last page.
  EXPECT_EQ(kind_of(some, [](StepMaker& maker, size_t s) { maker.prompt(s, tokens_of(25, 1)); }),
            ErrorKind::kUsage);
  for (const int32_t token : {-1, kVocabulary}) {
    EXPECT_EQ(kind_of(some,
                      [&](StepMaker& maker, size_t s) {
                        maker.prompt(s, {1, token});
                      }),
              ErrorKind::kRecord);
  }
}

TEST_P(AnyDecoder, StagesOfNoBlocksAreRefused) {
  for (const StageRange range : {StageRange{0, 0}, {-1, 2}, {2, 4}, {2, 1}}) {
    EXPECT_THROW(model_->load_stage(checkpoint_, *device_, range, DType::kFloat32, true), Error);
  }
  const auto last = model_->load_stage(checkpoint_, *device_, {1, 3}, DType::kFloat32, false);
  StepMaker maker;
  maker.prompt(maker.start(), {1});
  EXPECT_THROW(last->forward(maker.take(), {}, {}), Error);
  EXPECT_THROW(last->logits(device_->allocate(1, 16), {0}), Error);
}

// Of a size at which what a CPU device fills up does not count.
json large_config(const std::string& type) {
  json config = config_of(type);
  config["vocab_size"] = 96;
  if (type == "gpt2") {
    config.update({{"n_embd", 512}, {"n_inner", 768}, {"n_head", 4}, {"n_positions", 1400}});
  } else {
    config.update({{"d_model", 512}, {"d_kv", 64}, {"d_ff", 768}, {"num_heads", 4}});
  }
  return config;
}

// What the cost says is what a device sees: weights, a shared table once, caches, activations.
class DecoderCost : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const json config = large_config(GetParam());
    model_ = make_decoder_model(config, "config.json");
    if (model_->reads_encoder()) {
      add_decoder(checkpoint_, parse_t5_config(config, "config.json"));
    } else {
      add_gpt2(checkpoint_, parse_gpt2_config(config, "config.json"));
    }
    cost_ = model_->cost(checkpoint_, DType::kFloat32, true);
  }

  int64_t weights_of(StageRange range) const {
    int64_t bytes = cost_.per_stage_bytes;
    for (int64_t block = range.first_block; block < range.last_block; ++block) {
      bytes += cost_.blocks[static_cast<size_t>(block)].weight_bytes;
    }
    const bool first = range.first_block == 0;
    const bool last = range.last_block == model_->n_layers();
    if (first) bytes += cost_.first_bytes;
    if (last) bytes += cost_.last_bytes;
    return first && last ? bytes - cost_.shared_bytes : bytes;
  }

  std::unique_ptr<DecoderModel> model_;
  FakeCheckpoint checkpoint_;
  StackCost cost_;
};

TEST_P(DecoderCost, CountsEveryWeight) {
  int64_t stored = 0;
  for (const auto& [name, view] : checkpoint_.tensors()) {
    stored += view.rows() * static_cast<int64_t>(view.row_bytes());
  }
  EXPECT_EQ(weights_of({0, 3}), stored);
  EXPECT_EQ(cost_.shared_bytes, 96 * 512 * 4);
  EXPECT_EQ(cost_.last_params, 96 * 512);
  const StackCost headless = model_->cost(checkpoint_, DType::kFloat32, false);
  EXPECT_EQ(headless.last_bytes, cost_.last_bytes - cost_.shared_bytes);
  EXPECT_EQ(headless.last_params, 0);
  // A head of its own is held beside the table.
  checkpoint_.add_random("lm_head.weight", {96, 512});
  const StackCost own = model_->cost(checkpoint_, DType::kFloat32, true);
  EXPECT_EQ(own.shared_bytes, 0);
}

TEST_P(DecoderCost, IsWhatADeviceHolds) {
  for (const StageRange range : {StageRange{0, 3}, {0, 1}, {2, 3}}) {
    const auto device = make_test_device("cpu");
    const auto stage = model_->load_stage(checkpoint_, *device, range, DType::kFloat32, true);
    const auto weights = static_cast<int64_t>(device->memory().used);
    EXPECT_NEAR(weights, weights_of(range), 0.02 * static_cast<double>(weights));

    int64_t page = 0;
    for (int64_t block = range.first_block; block < range.last_block; ++block) {
      page += cost_.blocks[static_cast<size_t>(block)].cache_bytes_per_page;
    }
    const bool crosses = model_->reads_encoder();
    for (int time = 0; time < 2; ++time) {
      stage->reserve({.self = 10, .cross = 6});
      EXPECT_EQ(static_cast<int64_t>(device->memory().used) - weights, (crosses ? 16 : 10) * page);
    }
  }
}

TEST_P(DecoderCost, CountsActivations) {
  for (const int32_t length : {64, 1280}) {
    const auto device = make_test_device("cpu");
    const auto stage = model_->load_stage(checkpoint_, *device, {0, 3}, DType::kFloat32, true);
    stage->reserve({.self = 0, .cross = 2});
    StepMaker maker;
    maker.prompt(maker.start(30), tokens_of(length, 1), false);
    const Tensor source = device->allocate(30, 512);
    device->upload(Values(size_t{30} * 512, 0.5F).data(), source);
    const size_t before = device->memory().used;
    stage->forward(maker.take(), source, {});
    double per_len = cost_.activation_bytes_per_max_len;
    for (const auto& block : cost_.blocks) per_len += block.activation_bytes_per_max_len;
    const double planned =
        cost_.activation_bytes_per_token * length + per_len * length +
        cost_.activation_bytes_per_tile_row * std::min<double>(length, cost_.tile_rows);
    EXPECT_NEAR(static_cast<double>(device->memory().peak - before), planned, 0.03 * planned);
  }
}

INSTANTIATE_TEST_SUITE_P(Decoders, DecoderCost, testing::Values("t5", "umt5", "gpt2"),
                         [](const auto& info) { return info.param; });

INSTANTIATE_TEST_SUITE_P(Decoders, AnyDecoder,
                         testing::Combine(testing::Values("reference", "cpu"),
                                          testing::Values("t5", "mt5", "umt5", "gpt2")),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "_" + std::get<1>(info.param);
                         });

}  // namespace
}  // namespace quintet
