#include "models/gpt2.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "backends/reference/reference_device.h"
#include "models/decoder_run.h"
#include "models/fake_checkpoint.h"
#include "quintet/error.h"

namespace quintet {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Gpt2Config parse(json config) {
  config["model_type"] = "gpt2";
  return parse_gpt2_config(config, "m/config.json");
}

void expect_rejected(const json& config, const std::vector<std::string>& said) {
  try {
    parse(config);
    FAIL() << "accepted " << config;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kFile);
    for (const auto& text : said) EXPECT_THAT(error.what(), HasSubstr(text));
  }
}

TEST(Gpt2Config, WhatTheFileLeavesOutIsTheDefault) {
  const Gpt2Config c = parse(json::object());
  EXPECT_EQ(c.vocab_size, 50257);
  EXPECT_EQ(c.n_positions, 1024);
  EXPECT_EQ(c.d_model, 768);
  EXPECT_EQ(c.n_layers, 12);
  EXPECT_EQ(c.n_heads, 12);
  EXPECT_EQ(c.d_ff, 3072);
  EXPECT_FLOAT_EQ(c.eps, 1e-5F);
  EXPECT_EQ(c.activation, Activation::kGeluTanh);
  EXPECT_TRUE(c.scale_scores);
  EXPECT_FALSE(c.scale_by_layer);
  EXPECT_TRUE(c.ties);
  EXPECT_EQ(c.token_ids.bos, 50256);
  EXPECT_THAT(c.token_ids.eos, ElementsAre(50256));
  EXPECT_FALSE(c.token_ids.pad);
  EXPECT_FALSE(c.token_ids.decoder_start);
}

TEST(Gpt2Config, NullIdsAreNone) {
  const Gpt2Config c = parse({{"bos_token_id", nullptr},
                              {"eos_token_id", nullptr},
                              {"pad_token_id", nullptr},
                              {"n_inner", nullptr}});
  EXPECT_FALSE(c.token_ids.bos);
  EXPECT_THAT(c.token_ids.eos, IsEmpty());
  EXPECT_EQ(c.d_ff, 4 * 768);
  EXPECT_THAT(parse({{"eos_token_id", {5, 7}}}).token_ids.eos, ElementsAre(5, 7));
  EXPECT_THAT(parse({{"eos_token_id", 5}, {"pad_token_id", -1}}).token_ids.eos, ElementsAre(5));
}

TEST(Gpt2Config, Switches) {
  EXPECT_EQ(parse({{"activation_function", "quick_gelu"}}).activation, Activation::kGeluQuick);
  EXPECT_EQ(parse({{"activation_function", "tanh"}}).activation, Activation::kTanh);
  EXPECT_EQ(parse({{"activation_function", "gelu"}}).activation, Activation::kGeluErf);
  const Gpt2Config plain = parse({{"n_embd", 16}, {"n_head", 4}});
  EXPECT_EQ(plain.score_scale(0), 0.5F);
  EXPECT_EQ(plain.score_scale(3), 0.5F);
  const Gpt2Config by_layer = parse({{"n_embd", 16},
                                     {"n_head", 4},
                                     {"scale_attn_weights", false},
                                     {"scale_attn_by_inverse_layer_idx", true}});
  EXPECT_EQ(by_layer.score_scale(0), 1.0F);
  EXPECT_EQ(by_layer.score_scale(3), 0.25F);
}

TEST(Gpt2Config, ValuesAreChecked) {
  expect_rejected({{"activation_function", "gelu_old"}},
                  {"m/config.json", "'activation_function' is \"gelu_old\"", "gelu_new"});
  expect_rejected({{"n_embd", 16}, {"n_head", 3}}, {"'n_head' is 3", "16"});
  expect_rejected({{"n_positions", 0}}, {"'n_positions' is 0"});
  expect_rejected({{"n_inner", -1}}, {"'n_inner'"});
  expect_rejected({{"add_cross_attention", true}}, {"'add_cross_attention' is true"});
  expect_rejected({{"reorder_and_upcast_attn", 1}}, {"'reorder_and_upcast_attn'"});
  expect_rejected({{"eos_token_id", {1, "a"}}}, {"'eos_token_id' is a list"});
  expect_rejected({{"layer_norm_epsilon", 0}}, {"'layer_norm_epsilon'"});
}

json tiny() {
  return {{"model_type", "gpt2"}, {"vocab_size", 20}, {"n_positions", 8}, {"n_embd", 16},
          {"n_head", 4},          {"n_inner", 24},    {"n_layer", 2}};
}

struct Tiny {
  explicit Tiny(const json& config = tiny()) : config(config) {
    add_gpt2(checkpoint, parse_gpt2_config(config, "config.json"));
  }

  std::unique_ptr<DecoderModel> model() const { return make_gpt2_decoder(config, "config.json"); }

  std::vector<Values> logits(const std::vector<int32_t>& tokens = {3, 5, 6},
                             const std::vector<int32_t>& positions = {}) {
    ReferenceDevice device;
    DecoderRun run(*model(), checkpoint, device);
    StepMaker maker;
    maker.prompt(maker.start(), tokens, true, positions);
    return run(maker.take());
  }

  std::vector<std::string> notes() const { return model()->check(checkpoint, true); }

  json config;
  FakeCheckpoint checkpoint;
};

TEST(Gpt2, NamesOfEitherClass) {
  Tiny t;
  const auto expected = t.logits();
  t.checkpoint.prepend("transformer.");
  EXPECT_EQ(t.logits(), expected);
  EXPECT_THAT(t.notes(), IsEmpty());
  t.checkpoint.add_random("transformer.h.0.attn.bias", {1, 1, 8, 8});
  t.checkpoint.add_random("transformer.h.0.attn.masked_bias", {1});
  EXPECT_THAT(t.notes(), IsEmpty());
  t.checkpoint.add_random("score.weight", {2, 16});
  EXPECT_THAT(t.notes(), ElementsAre(HasSubstr("score.weight")));
  EXPECT_EQ(t.logits(), expected);
}

TEST(Gpt2, HeadIsTheTableUnlessTheFileHasOne) {
  Tiny t;
  t.checkpoint.prepend("transformer.");
  const auto tied = t.logits();
  t.checkpoint.add_random("lm_head.weight", {20, 16});
  const auto own = t.logits();
  EXPECT_NE(own, tied);
  t.config["tie_word_embeddings"] = false;
  EXPECT_EQ(t.logits(), own);
  t.checkpoint.remove("lm_head.weight");
  EXPECT_THROW(t.logits(), Error);
  EXPECT_THROW(t.notes(), Error);
  EXPECT_THAT(t.model()->check(t.checkpoint, false), IsEmpty());
}

// d_kv is 4: halving the queries by hand is what the scale does, exactly.
TEST(Gpt2, ScaleOfScores) {
  Tiny t;
  const auto expected = t.logits();
  t.config["scale_attn_weights"] = false;
  EXPECT_NE(t.logits(), expected);
  for (const std::string block : {"h.0.", "h.1."}) {
    for (const std::string kind : {"weight", "bias"}) {
      const HostView view = *t.checkpoint.find(block + "attn.c_attn." + kind);
      Values values(static_cast<size_t>(view.rows() * view.cols()));
      widen(view.data, view.dtype, values.size(), values.data());
      for (size_t i = 0; i < values.size(); ++i) {
        if (i % 48 < 16) values[i] /= 2;
      }
      t.checkpoint.add(view.name, view.shape, values);
    }
  }
  EXPECT_EQ(t.logits(), expected);
  t.config["scale_attn_by_inverse_layer_idx"] = true;
  EXPECT_NE(t.logits(), expected);
}

TEST(Gpt2, PositionsMayBeAnyThatTheModelHas) {
  Tiny t;
  const auto counted = t.logits();
  EXPECT_EQ(t.logits({3, 5, 6}, {0, 1, 2}), counted);
  EXPECT_NE(t.logits({3, 5, 6}, {1, 2, 3}), counted);
  // Neither rising nor apart.
  EXPECT_NE(t.logits({3, 5, 6}, {7, 7, 0}), counted);
  EXPECT_EQ(t.logits({3, 5, 6}, {0, 1, 7})[1], counted[1]);
}

TEST(Gpt2, PositionBeyondTheLastIsTheRecordsFault) {
  Tiny t;
  EXPECT_EQ(t.logits({1, 2, 3, 4, 5, 6, 7, 8}).size(), 8U);
  for (const std::vector<int32_t>& positions :
       {std::vector<int32_t>{0, 8, 0}, std::vector<int32_t>{-1, 0, 0}}) {
    try {
      t.logits({1, 2, 3}, positions);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kRecord);
      EXPECT_THAT(error.what(), HasSubstr("n_positions 8"));
    }
  }
}

TEST(Gpt2, TensorOfAnotherShapeIsNamed) {
  Tiny t;
  t.checkpoint.add_random("h.1.mlp.c_proj.weight", {16, 24});
  try {
    t.notes();
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("'h.1.mlp.c_proj.weight' is [16, 24], config.json implies "
                                        "[24, 16]"));
  }
}

TEST(Gpt2, RegistryKnowsIt) {
  const auto model = make_decoder_model(tiny(), "config.json");
  EXPECT_EQ(model->model_type(), "gpt2");
  EXPECT_FALSE(model->reads_encoder());
  EXPECT_EQ(model->max_positions(), 8);
  EXPECT_EQ(model->kv_shape().d_kv, 4);
  try {
    make_decoder_model({{"model_type", "bert"}}, "config.json");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "config.json: 'model_type' is \"bert\", expected one of t5, mt5, umt5, gpt2");
  }
}

}  // namespace
}  // namespace quintet
