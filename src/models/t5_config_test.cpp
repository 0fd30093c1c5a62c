#include "models/t5_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "models/encoder.h"
#include "quintet/error.h"

namespace quintet {
namespace {

using nlohmann::json;
using testing::HasSubstr;

T5Config parse(json config) {
  if (!config.contains("model_type")) config["model_type"] = "t5";
  return parse_t5_config(config, "m/config.json");
}

void expect_rejected(const json& config, const std::vector<std::string>& said) {
  try {
    parse(config);
    FAIL() << "accepted " << config;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kFile);
    EXPECT_THAT(error.what(), HasSubstr("m/config.json"));
    for (const auto& text : said) EXPECT_THAT(error.what(), HasSubstr(text));
  }
}

TEST(T5Config, WhatTheFileLeavesOutIsTheFamilysDefault) {
  const T5Config t5 = parse(json::object());
  EXPECT_EQ(t5.vocab_size, 32128);
  EXPECT_EQ(t5.d_model, 512);
  EXPECT_EQ(t5.d_kv, 64);
  EXPECT_EQ(t5.d_ff, 2048);
  EXPECT_EQ(t5.n_heads, 8);
  EXPECT_EQ(t5.n_layers, 6);
  EXPECT_EQ(t5.relative_buckets, 32);
  EXPECT_EQ(t5.relative_max_distance, 128);
  EXPECT_FLOAT_EQ(t5.eps, 1e-6F);
  EXPECT_EQ(t5.activation, Activation::kRelu);
  EXPECT_FALSE(t5.gated);
  EXPECT_FALSE(t5.bias_per_block);
  EXPECT_EQ(t5.pad_token_id, 0);

  const T5Config mt5 = parse({{"model_type", "mt5"}});
  EXPECT_EQ(mt5.vocab_size, 250112);
  EXPECT_EQ(mt5.d_ff, 1024);
  EXPECT_EQ(mt5.n_heads, 6);
  EXPECT_EQ(mt5.n_layers, 8);
  EXPECT_EQ(mt5.activation, Activation::kGeluTanh);
  EXPECT_TRUE(mt5.gated);
  EXPECT_FALSE(mt5.bias_per_block);
  EXPECT_TRUE(parse({{"model_type", "umt5"}}).bias_per_block);
}

TEST(T5Config, NullCountsAsAbsentButForThePadToken) {
  const T5Config c =
      parse({{"d_kv", nullptr}, {"feed_forward_proj", nullptr}, {"pad_token_id", nullptr}});
  EXPECT_EQ(c.d_kv, 64);
  EXPECT_EQ(c.activation, Activation::kRelu);
  EXPECT_EQ(c.pad_token_id, -1);
}

TEST(T5Config, HeadCountIsNotDerived) {
  const T5Config c = parse({{"d_model", 16}, {"num_heads", 3}, {"d_kv", 4}});
  EXPECT_EQ(c.n_heads, 3);
  EXPECT_EQ(c.inner(), 12);
}

TEST(T5Config, ActivationNamedOnceOrTwice) {
  const T5Config gated = parse({{"feed_forward_proj", "gated-gelu"}});
  EXPECT_EQ(gated.activation, Activation::kGeluTanh);
  EXPECT_TRUE(gated.gated);
  const T5Config both = parse({{"feed_forward_proj", "gated-gelu"}, {"dense_act_fn", "gelu"}});
  EXPECT_EQ(both.activation, Activation::kGeluErf);
  EXPECT_TRUE(both.gated);
  const T5Config plain = parse({{"feed_forward_proj", "gelu"}});
  EXPECT_EQ(plain.activation, Activation::kGeluErf);
  EXPECT_FALSE(plain.gated);
  const T5Config flag = parse({{"feed_forward_proj", "gated-silu"}, {"is_gated_act", false}});
  EXPECT_EQ(flag.activation, Activation::kSilu);
  EXPECT_FALSE(flag.gated);
  expect_rejected({{"feed_forward_proj", "gated-tanhh"}}, {"'feed_forward_proj'", "gated-tanhh"});
  expect_rejected({{"feed_forward_proj", "half-gelu"}}, {"'feed_forward_proj'", "gelu_new"});
  expect_rejected({{"feed_forward_proj", "gated-gelu-x"}}, {"'feed_forward_proj'"});
  expect_rejected({{"dense_act_fn", "tanhh"}}, {"'dense_act_fn'", "tanhh", "relu"});
}

TEST(T5Config, ValuesAreChecked) {
  expect_rejected({{"d_model", 0}}, {"'d_model' is 0", "from 1"});
  expect_rejected({{"d_model", -4}}, {"'d_model' is -4"});
  expect_rejected({{"d_model", 64.5}}, {"'d_model' is 64.5", "whole number"});
  expect_rejected({{"d_model", "64"}}, {"'d_model' is \"64\""});
  expect_rejected({{"d_ff", 18446744073709551615ULL}}, {"'d_ff'"});
  expect_rejected({{"num_layers", 1000000000}}, {"'num_layers'"});
  expect_rejected({{"num_heads", {1}}}, {"'num_heads' is a list"});
  expect_rejected({{"relative_attention_num_buckets", 2}}, {"'relative_attention_num_buckets'"});
  expect_rejected({{"relative_attention_max_distance", 8}},
                  {"'relative_attention_max_distance' is 8", "more than 8"});
  expect_rejected({{"layer_norm_epsilon", -1}}, {"'layer_norm_epsilon'"});
  expect_rejected({{"is_gated_act", 1}}, {"'is_gated_act' is 1", "true or false"});
  expect_rejected({{"model_type", "bert"}}, {"'model_type' is \"bert\"", "t5, mt5 or umt5"});
  EXPECT_THROW(parse_t5_config(json::array(), "config.json"), Error);
}

TEST(T5Config, DecoderFacts) {
  const T5Config t5 = parse({{"num_layers", 4}});
  EXPECT_TRUE(t5.has_decoder);
  EXPECT_EQ(t5.n_decoder_layers, 4);
  EXPECT_TRUE(t5.scale_logits);
  EXPECT_FALSE(t5.token_ids.bos);
  EXPECT_THAT(t5.token_ids.eos, testing::ElementsAre(1));
  EXPECT_EQ(t5.token_ids.pad, 0);
  EXPECT_FALSE(t5.token_ids.decoder_start);
  EXPECT_EQ(parse({{"num_layers", 4}, {"num_decoder_layers", 2}}).n_decoder_layers, 2);

  EXPECT_FALSE(parse({{"tie_word_embeddings", false}}).scale_logits);
  EXPECT_TRUE(parse({{"model_type", "umt5"}}).scale_logits);
  // mT5 never scales, and its class has a start token.
  EXPECT_FALSE(parse({{"model_type", "mt5"}, {"tie_word_embeddings", true}}).scale_logits);
  EXPECT_EQ(parse({{"model_type", "mt5"}}).token_ids.decoder_start, 0);
  const T5Config none = parse({{"model_type", "mt5"}, {"decoder_start_token_id", nullptr}});
  EXPECT_FALSE(none.token_ids.decoder_start);

  EXPECT_FALSE(parse({{"architectures", {"T5EncoderModel"}}}).has_decoder);
  EXPECT_TRUE(parse({{"architectures", {"T5Model"}}}).has_decoder);
  expect_rejected({{"architectures", "T5Model"}}, {"'architectures'", "list of strings"});
  expect_rejected({{"num_decoder_layers", -1}}, {"'num_decoder_layers'"});
  expect_rejected({{"tie_word_embeddings", 1}}, {"'tie_word_embeddings'"});
  expect_rejected({{"decoder_start_token_id", {1}}}, {"'decoder_start_token_id'"});
}

TEST(Registry, NamesTheTypesItKnows) {
  EXPECT_EQ(make_encoder_model({{"model_type", "umt5"}}, "config.json")->model_type(), "umt5");
  try {
    make_encoder_model(json::object(), "config.json");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "config.json: 'model_type' is missing, expected one of t5, mt5, umt5");
  }
}

}  // namespace
}  // namespace quintet
