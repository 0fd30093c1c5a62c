#include "placement/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "placement/svg.h"

namespace quintet {
namespace {

using testing::HasSubstr;

Plan two_stages() {
  Plan plan;
  plan.n_layers = 24;
  plan.tokens_per_second = 12345.6;
  plan.tokens_per_batch = 498;
  plan.n_batches = 40;
  plan.fill = 0.975;
  StagePlan stage;
  stage.device = "cpu[0-3]";
  stage.first_block = 0;
  stage.last_block = 11;
  stage.weight_bytes = int64_t{3} << 30;
  stage.activation_bytes = int64_t{200} << 20;
  stage.fixed_bytes = int64_t{40} << 20;
  stage.memory_bytes = int64_t{16} << 30;
  stage.seconds_per_token = 7e-5;
  stage.share = 0.47;
  stage.utilisation = 0.87;
  plan.stages.push_back(stage);
  stage.device = "cpu[4-7]";
  stage.first_block = 11;
  stage.last_block = 24;
  stage.seconds_per_token = 7.9e-5;
  stage.share = 0.53;
  stage.utilisation = 0.975;
  plan.stages.push_back(stage);
  plan.unused = {"cpu[8]"};
  return plan;
}

TEST(Report, TableIsReadable) {
  EXPECT_EQ(
      plan_table(two_stages()),
      "encoder: 24 blocks in float32\n"
      "device    blocks   weights  activations   program    memory    time  busy  fits\n"
      "cpu[0-3]    0-10  3.00 GiB      200 MiB  40.0 MiB  16.0 GiB  47.0 %  87 %   yes\n"
      "cpu[4-7]   11-23  3.00 GiB      200 MiB  40.0 MiB  16.0 GiB  53.0 %  98 %   yes\n"
      "cpu[8]      none\n"
      "expected 12,346 tokens/s with micro-batches of 498 tokens; 40 of them, start and end cost "
      "2.5 %\n"
      "fits\n");
}

TEST(Report, NoLineIsWiderThanAPage) {
  Plan plan = two_stages();
  plan.fits = false;
  plan.stages[0].fits = false;
  plan.stages[0].device = "cpu[0,2,4,6,8,10,12,14,16,18,20,22,24,26,28,30]";
  plan.problem =
      "cpu:0: encoder blocks 0-10 need 3.23 GiB in float32 (3.00 GiB of weights, 200 MiB of "
      "activations), 2.00 GiB is available; cpu:1: and so on";
  plan.advice =
      "cpu:0 holds 6 of these 11 blocks; what would fit: --dtype bfloat16, or another "
      "device with 1.31 GiB free and some more words";
  std::istringstream lines(plan_table(plan));
  std::string line;
  while (std::getline(lines, line)) EXPECT_LE(line.size(), 100U) << line;
  EXPECT_THAT(plan_table(plan), HasSubstr("does not fit: cpu:0"));
}

TEST(Report, JsonHasEveryNumber) {
  const auto value = nlohmann::json::parse(plan_json(two_stages()));
  EXPECT_EQ(value.at("fits"), true);
  EXPECT_EQ(value.at("device_map").at("cpu[4-7]").size(), 13U);
  EXPECT_EQ(value.at("stages").size(), 2U);
  EXPECT_EQ(value.at("stages")[0].at("blocks"), (std::vector<int64_t>{0, 11}));
  EXPECT_EQ(value.at("stages")[0].at("needed_bytes"), (int64_t{3} << 30) + (int64_t{240} << 20));
  EXPECT_EQ(value.at("unused_devices")[0], "cpu[8]");
  EXPECT_EQ(value.at("tokens_per_second"), 12345.6);
}

TEST(Svg, DrawsEveryDeviceAndEscapesNames) {
  Plan plan = two_stages();
  plan.stages[0].device = "a<b>&\"c\"";
  const std::string svg = plan_svg(plan, {.title = "<model> & more"});
  EXPECT_TRUE(svg.starts_with("<svg "));
  EXPECT_THAT(svg, HasSubstr("a&lt;b&gt;&amp;&quot;c&quot;"));
  EXPECT_THAT(svg, HasSubstr("&lt;model&gt; &amp; more"));
  EXPECT_THAT(svg, HasSubstr("cpu[4-7]"));
  EXPECT_THAT(svg, HasSubstr("cpu[8]"));
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

}  // namespace
}  // namespace quintet
