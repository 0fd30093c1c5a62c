#include "placement/generation_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

namespace quintet {
namespace {

using testing::HasSubstr;

constexpr int64_t kMiB = int64_t{1} << 20;

GenerationPlan two_devices() {
  GenerationPlan plan;
  plan.encoder = {.n_layers = 12,
                  .stages = {{.device = "cpu[0]", .first_block = 0, .last_block = 9},
                             {.device = "cpu[1]", .first_block = 9, .last_block = 12}}};
  plan.decoder = {.n_layers = 12, .stages = {{"cpu[1]", 0, 12, 300 * kMiB, 0.5, 0.5}}};
  plan.devices = {{.device = "cpu[0]",
                   .weight_bytes = 400 * kMiB,
                   .activation_bytes = 12 * kMiB,
                   .memory_bytes = 2048 * kMiB,
                   .seconds_per_record = 0.4,
                   .utilisation = 0.8},
                  {.device = "cpu[1]",
                   .weight_bytes = 500 * kMiB,
                   .cache_bytes = 123 * kMiB,
                   .activation_bytes = 15 * kMiB,
                   .memory_bytes = 2048 * kMiB,
                   .seconds_per_record = 0.5,
                   .utilisation = 1}};
  plan.unused = {"cpu[2]"};
  plan.rows_per_group = 32;
  plan.rows_per_record = 4;
  plan.self_pages = 1234;
  plan.cross_pages = 80;
  plan.records_per_second = 2;
  plan.new_tokens_per_second = 512;
  plan.prompt_tokens_per_second = 2;
  plan.source_tokens_per_second = 12345;
  return plan;
}

TEST(GenerationReport, TableIsReadable) {
  EXPECT_EQ(generation_plan_table(two_devices()),
            "encoder: 12 blocks, decoder: 12 blocks in float32\n"
            "device  encoder  decoder  weights   caches  activations    memory   busy  fits\n"
            "cpu[0]      0-8     none  400 MiB      0 B     12.0 MiB  2.00 GiB   80 %   yes\n"
            "cpu[1]     9-11     0-11  500 MiB  123 MiB     15.0 MiB  2.00 GiB  100 %   yes\n"
            "cpu[2]     none     none\n"
            "1 group of 32 rows, 4 to a record; caches of 1,234 pages and 80 for the encoder's "
            "output, each of 24\ntokens\n"
            "expected 512 new tokens/s, 2 prompt tokens/s, 12,345 encoder tokens/s\n"
            "fits\n");
}

TEST(GenerationReport, ADecoderAloneHasNoColumnForAnEncoder) {
  GenerationPlan plan = two_devices();
  plan.encoder = {};
  plan.cross_pages = 0;
  const std::string table = generation_plan_table(plan);
  EXPECT_THAT(table, HasSubstr("decoder: 12 blocks in float32\ndevice  decoder  weights"));
  EXPECT_EQ(table.find("encoder"), std::string::npos) << table;
}

TEST(GenerationReport, NoLineIsWiderThanAPage) {
  GenerationPlan plan = two_devices();
  plan.fits = false;
  plan.devices[0].device = plan.encoder.stages[0].device =
      "cpu[0,2,4,6,8,10,12,14,16,18,20,22,24,26,28,30]";
  plan.devices[0].fixed_bytes = 60 * kMiB;
  plan.note = "groups have 32 rows of the 64 asked for: with more the caches do not fit";
  plan.problem =
      "cpu[0]: encoder blocks 0-8 and decoder blocks 0-11 need 3.23 GiB in float32 (3.00 GiB of "
      "weights, 200 MiB of activations), 2.00 GiB is available";
  plan.advice = "what would fit: --dtype bfloat16, or another device with 1.31 GiB free";
  std::istringstream lines(generation_plan_table(plan));
  std::string line;
  while (std::getline(lines, line)) EXPECT_LE(line.size(), 100U) << line;
  EXPECT_THAT(generation_plan_table(plan), HasSubstr("does not fit: cpu[0]"));
}

TEST(GenerationReport, JsonHasEveryNumber) {
  const auto value = nlohmann::json::parse(generation_plan_json(two_devices()));
  EXPECT_EQ(value.at("fits"), true);
  EXPECT_EQ(value.at("encoder").at("device_map").at("cpu[0]").size(), 9U);
  EXPECT_EQ(value.at("decoder").at("stages")[0].at("blocks"), (std::vector<int64_t>{0, 12}));
  EXPECT_EQ(value.at("devices")[1].at("cache_bytes"), 123 * kMiB);
  EXPECT_EQ(value.at("devices")[1].at("needed_bytes"), (500 + 123 + 15) * kMiB);
  EXPECT_EQ(value.at("self_pages"), 1234);
  EXPECT_EQ(value.at("rows_per_group"), 32);
  EXPECT_EQ(value.at("unused_devices")[0], "cpu[2]");
  GenerationPlan gpt2 = two_devices();
  gpt2.encoder = {};
  EXPECT_FALSE(nlohmann::json::parse(generation_plan_json(gpt2)).contains("encoder"));
}

}  // namespace
}  // namespace quintet
