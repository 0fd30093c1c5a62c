#include "conformance/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace quintet::conformance {
namespace {

using testing::HasSubstr;
using testing::Not;

Report example() {
  Report report;
  report.version = "1.2.3";
  report.devices.push_back({.name = "mydev:0",
                            .description = "a device",
                            .total_bytes = 1024,
                            .free_bytes = 10,
                            .n_cores = 4,
                            .memory_pool = "host",
                            .hardware = "x"});
  report.results = {
      {.model_class = "GPT2Model", .test = "test_bad_maps"},
      {.model_class = "GPT2Model",
       .test = "test_manual_seed",
       .outcome = Outcome::kSkip,
       .reason = "the class does not generate"},
      {.model_class = "T5Model",
       .test = "test_bad_maps",
       .outcome = Outcome::kFail,
       .findings = {{"a missing block", "an error", "no error"}},
       .seconds = 0.25},
  };
  return report;
}

TEST(Report, TableAndReasons) {
  const std::string text = report_text(example(), false);
  EXPECT_THAT(text, HasSubstr("                                   GPT2   T5\n"
                              "                                   Model  Model\n"
                              "test_bad_maps                      pass   FAIL\n"
                              "test_manual_seed                   skip"));
  EXPECT_THAT(text, HasSubstr("FAIL T5Model test_bad_maps (0.25 s)\n  a missing block\n"
                              "    expected an error\n    found    no error\n"));
  EXPECT_THAT(text, HasSubstr("skip test_manual_seed: the class does not generate (GPT2Model)"));
  EXPECT_THAT(text, HasSubstr("1 passed, 1 failed, 1 skipped"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(report_text(example(), true), HasSubstr("\x1b[1;31mFAIL"));
}

TEST(Report, JsonThereAndBack) {
  Report report = example();
  const auto value = report_json(report);
  EXPECT_EQ(value.at("quintet"), "1.2.3");
  EXPECT_EQ(value.at("failed"), 1);
  EXPECT_EQ(value.at("devices").at(0).at("units"), 4);
  report.results[0].relative_difference = INFINITY;
  for (const CellResult& result : report.results) {
    const auto text = to_json(result).dump();
    const CellResult back = cell_result_from(nlohmann::json::parse(text));
    EXPECT_EQ(to_json(back).dump(), text);
    EXPECT_EQ(back.relative_difference, result.relative_difference);
  }
  const DeviceInfo device = device_info_from(to_json(report.devices[0]));
  EXPECT_EQ(device.name, "mydev:0");
  EXPECT_EQ(device.hardware, "x");
}

}  // namespace
}  // namespace quintet::conformance
