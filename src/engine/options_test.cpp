#include "engine/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/error.h"

namespace quintet {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

const OptionSpec& spec_of(std::string_view name) {
  for (const OptionSpec& spec : option_table()) {
    if (spec.name == name) return spec;
  }
  throw std::runtime_error("no such option: " + std::string(name));
}

Options with(std::string_view name, std::string_view value) {
  Options options;
  spec_of(name).set(options, value);
  return options;
}

std::string refusal(std::string_view name, std::string_view value) {
  try {
    with(name, value);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    return error.what();
  }
  return "";
}

TEST(OptionTable, IsComplete) {
  std::set<std::string_view> names;
  for (const OptionSpec& spec : option_table()) {
    EXPECT_TRUE(names.insert(spec.name).second) << spec.name;
    EXPECT_FALSE(spec.help.empty()) << spec.name;
    EXPECT_NE(spec.commands, 0U) << spec.name;
    EXPECT_TRUE(!spec.value.empty() || spec.initial.empty()) << spec.name;  // a flag has none
  }
}

// The defaults that help shows are those of a plain Options.
TEST(OptionTable, DefaultsAreTrue) {
  const Options plain;
  const auto initial = [](std::string_view name) { return with(name, spec_of(name).initial); };
  EXPECT_EQ(initial("device-map").device_map, plain.device_map);
  EXPECT_EQ(initial("input-format").input_format, plain.input_format);
  EXPECT_EQ(initial("protein").protein.preset, plain.protein.preset);
  EXPECT_EQ(initial("rare-residues").protein.rare_residues, plain.protein.rare_residues);
  EXPECT_EQ(initial("on-duplicate").on_duplicate, plain.on_duplicate);
  EXPECT_EQ(initial("shard").shard_index, plain.shard_index);
  EXPECT_EQ(initial("shard").shard_count, plain.shard_count);
  EXPECT_EQ(initial("pool").pool, plain.pool);
  EXPECT_EQ(initial("masked-rows").drop_masked_rows, plain.drop_masked_rows);
  EXPECT_EQ(initial("layout").layout, plain.layout);
  EXPECT_EQ(initial("output-dtype").output_dtype, DType::kFloat32);
}

TEST(OptionTable, FlagsSetWhatTheySay) {
  EXPECT_TRUE(with("skip-empty", "").skip_empty);
  EXPECT_TRUE(with("normalize", "").normalize);
  EXPECT_TRUE(with("overwrite", "").overwrite);
  EXPECT_TRUE(with("resume", "").resume);
  EXPECT_TRUE(with("json", "").json);
  EXPECT_TRUE(with("quiet", "").quiet);
  EXPECT_TRUE(with("verbose", "").verbose);
  EXPECT_TRUE(with("stop-as-x", "").protein.stop_as_x);
  EXPECT_FALSE(with("no-lend", "").lend_cores);
}

TEST(OptionTable, ValuesAreStored) {
  EXPECT_EQ(with("shard", "2/8").shard_index, 1);
  EXPECT_EQ(with("shard", "8/8").shard_count, 8);
  EXPECT_THAT(with("lengths", "50,300,1200").lengths, ElementsAre(50, 300, 1200));
  EXPECT_EQ(with("dtype", "bfloat16").dtype, DType::kBFloat16);
  EXPECT_EQ(with("pool", "last").pool, Pooling::kLast);
  EXPECT_EQ(with("layout", "flat").layout, Hdf5Layout::kFlat);
  EXPECT_EQ(with("protein", "prostt5-3di").protein.preset, ProteinPreset::kProstT53di);
  EXPECT_EQ(with("tokens-per-batch", "1").tokens_per_batch, 1);
}

// What a number may be: below, at and above its ends, and no number at all.
TEST(OptionTable, NumbersHaveRanges) {
  const struct {
    const char* option;
    int64_t low, high;
  } kRanges[] = {{"threads", 1, 4096},
                 {"tokens-per-batch", 1, 1 << 24},
                 {"max-tokens", 1, 1 << 30},
                 {"lengths", 1, 10'000'000}};
  for (const auto& [option, low, high] : kRanges) {
    EXPECT_EQ(refusal(option, std::to_string(low)), "") << option;
    EXPECT_EQ(refusal(option, std::to_string(high)), "") << option;
    const std::string accepted = fmt::format("a whole number from {} to {}", low, high);
    for (const std::string& value :
         {std::to_string(low - 1), std::to_string(high + 1), std::string("x"), std::string("1.5"),
          std::string("99999999999999999999"), std::string("-1"), std::string("1 ")}) {
      EXPECT_THAT(refusal(option, value),
                  AllOf(HasSubstr(fmt::format("--{} {}", option, value)), HasSubstr(accepted)));
    }
  }
  EXPECT_THAT(refusal("lengths", "5,,6"), HasSubstr("--lengths"));
  EXPECT_THAT(refusal("lengths", ""), HasSubstr("token counts"));
  for (const char* value : {"0/3", "4/3", "1/0", "1", "a/b", "/", "1/1000001"}) {
    EXPECT_THAT(refusal("shard", value), HasSubstr("--shard")) << value;
  }
}

TEST(OptionTable, ChoicesAreListed) {
  EXPECT_THAT(refusal("pool", "max"), HasSubstr("--pool max: expected one of none, mean, first"));
  EXPECT_THAT(refusal("protein", "esm"), HasSubstr("prostt5-3di"));
  EXPECT_THAT(refusal("layout", ""), HasSubstr("bio-embeddings"));
  EXPECT_THAT(refusal("input-format", "csv"), HasSubstr("jsonl"));
  EXPECT_THAT(refusal("output-format", "csv"), HasSubstr("safetensors"));
  EXPECT_THAT(refusal("on-duplicate", "keep"), HasSubstr("reject, rename, first"));
  EXPECT_THAT(refusal("masked-rows", "keep"), HasSubstr("zero, drop"));
  EXPECT_THAT(refusal("dtype", "int8"), HasSubstr("float32, float16, bfloat16"));
  EXPECT_THAT(refusal("output-dtype", "int64"), HasSubstr("float32, float16, bfloat16"));
  EXPECT_THAT(refusal("devices", ""), HasSubstr("at least one device"));
}

}  // namespace
}  // namespace quintet
