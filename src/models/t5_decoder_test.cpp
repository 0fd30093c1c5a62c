// Where T5's decoder finds its tensors, and what its config says of the head.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "backends/reference/reference_device.h"
#include "models/decoder_run.h"
#include "models/fake_checkpoint.h"
#include "models/t5.h"
#include "quintet/error.h"

namespace quintet {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

json tiny() {
  return {{"model_type", "t5"}, {"vocab_size", 20}, {"d_model", 16},   {"d_kv", 4},
          {"d_ff", 24},         {"num_heads", 3},   {"num_layers", 1}, {"num_decoder_layers", 2}};
}

struct Tiny {
  explicit Tiny(const json& config = tiny()) : config(config), model(make()) {
    add_decoder(checkpoint, parse_t5_config(config, "config.json"));
  }

  std::unique_ptr<DecoderModel> make() const { return make_t5_decoder(config, "config.json"); }

  // Logits of one prompt.
  Values logits() {
    ReferenceDevice device;
    DecoderRun run(*make(), checkpoint, device);
    StepMaker maker;
    maker.prompt(maker.start(3), {0, 5, 6});
    StepBatch step = maker.take();
    step.selected = {2};
    return run(step, {1, 2, 3})[0];
  }

  std::vector<std::string> notes() const { return model->check(checkpoint, true); }

  std::string problem(bool with_head = true) const {
    try {
      model->check(checkpoint, with_head);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kFile);
      return error.what();
    }
    return "";
  }

  json config;
  std::unique_ptr<DecoderModel> model;
  FakeCheckpoint checkpoint;
};

// d_model is 16: tied logits are a quarter of the untied, exactly.
TEST(T5Decoder, LogitsAreScaledWhereTheConfigSaysSo) {
  const auto of = [](const json& more) {
    json config = tiny();
    config.update(more);
    return Tiny(config).logits();
  };
  const Values tied = of(json::object());
  Values quadrupled = tied;
  for (float& value : quadrupled) value *= 4;
  EXPECT_EQ(of({{"tie_word_embeddings", true}}), tied);
  EXPECT_EQ(of({{"tie_word_embeddings", false}}), quadrupled);
  EXPECT_EQ(of({{"tie_word_embeddings", true}, {"scale_decoder_outputs", false}}), quadrupled);
  EXPECT_EQ(of({{"tie_word_embeddings", false}, {"scale_decoder_outputs", true}}), tied);
}

TEST(T5Decoder, HeadOfItsOwnCountsWhateverTheConfigSays) {
  Tiny t;
  const Values tied = t.logits();
  // The same numbers in a second place change no bit, other numbers do.
  const HostView shared = *t.checkpoint.find("shared.weight");
  Values values(20 * 16);
  widen(shared.data, shared.dtype, values.size(), values.data());
  t.checkpoint.add("lm_head.weight", {20, 16}, values);
  EXPECT_EQ(t.logits(), tied);
  for (float& value : values) value *= 2;
  t.checkpoint.add("lm_head.weight", {20, 16}, values);
  Values doubled = tied;
  for (float& value : doubled) value *= 2;
  EXPECT_EQ(t.logits(), doubled);
  EXPECT_THAT(t.notes(), IsEmpty());
}

TEST(T5Decoder, TableStandsUnderAnyOfItsNames) {
  Tiny t;
  const Values expected = t.logits();
  std::string at = "shared.weight";
  for (const std::string name : {"decoder.embed_tokens.weight", "encoder.embed_tokens.weight",
                                 "lm_head.weight", "shared.weight"}) {
    t.checkpoint.rename(at, name);
    at = name;
    EXPECT_EQ(t.logits(), expected) << name;
    EXPECT_THAT(t.notes(), IsEmpty()) << name;
  }
  t.checkpoint.prepend("transformer.");
  EXPECT_EQ(t.logits(), expected);
}

// No shared.weight: the decoder has its table, the head its matrix.
TEST(T5Decoder, TableAndHeadWithoutASharedOne) {
  json config = tiny();
  config["tie_word_embeddings"] = false;
  Tiny t(config);
  t.checkpoint.add_random("lm_head.weight", {20, 16});
  const Values expected = t.logits();
  t.checkpoint.rename("shared.weight", "decoder.embed_tokens.weight");
  EXPECT_EQ(t.logits(), expected);
  t.checkpoint.remove("decoder.embed_tokens.weight");
  EXPECT_NE(t.logits(), expected);
}

TEST(T5Decoder, TensorsThatItDoesNotUseAreNoted) {
  Tiny t;
  const Values expected = t.logits();
  add_t5_stack(t.checkpoint, parse_t5_config(t.config, ""), "encoder.", 1, DType::kFloat32);
  EXPECT_THAT(t.notes(), IsEmpty());
  const std::string odd = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight";
  t.checkpoint.add_random(odd, {32, 3});
  EXPECT_THAT(t.notes(), ElementsAre(AllOf(HasSubstr(odd), HasSubstr("the decoder does not use"))));
  EXPECT_EQ(t.logits(), expected);
}

TEST(T5Decoder, WhatIsMissingIsNamed) {
  Tiny t;
  const std::string name = "decoder.block.1.layer.1.EncDecAttention.k.weight";
  t.checkpoint.add_random(name, {16, 16});
  EXPECT_THAT(t.problem(), HasSubstr("'" + name + "' is [16, 16], config.json implies [12, 16]"));
  t.checkpoint.remove(name);
  EXPECT_THAT(t.problem(), HasSubstr(name));
  FakeCheckpoint encoder;
  add_encoder(encoder, parse_t5_config(t.config, ""));
  EXPECT_THROW(t.model->check(encoder, true), Error);
  EXPECT_THROW(t.model->cost(encoder, DType::kFloat32, true), Error);
}

TEST(T5Decoder, EncodersAloneHaveNone) {
  for (const json& more :
       {json{{"architectures", {"T5EncoderModel"}}}, json{{"architectures", {"UMT5EncoderModel"}}},
        json{{"num_decoder_layers", 0}}}) {
    json config = tiny();
    config.update(more);
    EXPECT_THROW(make_t5_decoder(config, "config.json"), Error);
    EXPECT_EQ(make_t5_encoder(config, "config.json")->n_layers(), 1);
  }
  json config = tiny();
  config["architectures"] = {"T5ForConditionalGeneration"};
  EXPECT_EQ(make_t5_decoder(config, "config.json")->n_layers(), 2);
  config["relative_attention_max_distance"] = 16;
  EXPECT_THROW(make_t5_decoder(config, "config.json"), Error);
}

TEST(T5Decoder, StoredDTypeIsThatOfItsOwnMatrices) {
  Tiny t;
  FakeCheckpoint narrow;
  add_decoder(narrow, parse_t5_config(t.config, ""), DType::kBFloat16);
  narrow.add_random("encoder.block.0.layer.0.SelfAttention.q.weight", {12, 16});
  EXPECT_EQ(t.model->stored_dtype(narrow), DType::kBFloat16);
  EXPECT_EQ(t.model->stored_dtype(t.checkpoint), DType::kFloat32);
}

}  // namespace
}  // namespace quintet
