#include "conformance/spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "quintet/error.h"

namespace quintet::conformance {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

DeviceSpec parse(const std::string& text) { return parse_device_spec(text, "spec.json", "/specs"); }

std::string problem_of(const std::string& text) {
  try {
    parse(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_THAT(error.what(), HasSubstr("spec.json"));
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

TEST(Spec, AKindWithItsDevices) {
  const DeviceSpec spec = parse(R"({"device_name": "mydev", "devices": ["mydev:0", "mydev:1"],
      "module": "./libmydev.so", "manual_seed": true, "empty_cache": false, "tolerance": 0.5})");
  EXPECT_EQ(spec.kind, "mydev");
  EXPECT_THAT(spec.devices, ElementsAre("mydev:0", "mydev:1"));
  EXPECT_EQ(spec.module, "/specs/./libmydev.so");
  EXPECT_TRUE(spec.hooks.manual_seed);
  EXPECT_FALSE(spec.hooks.empty_cache);
  EXPECT_FALSE(spec.hooks.device_count);
  EXPECT_EQ(spec.tolerance, 0.5);
  EXPECT_FALSE(spec.skip_if_missing);
}

TEST(Spec, AKindThatCounts) {
  const DeviceSpec spec = parse(R"({"device_name": "mydev", "device_count": true})");
  EXPECT_EQ(spec.kind, "mydev");
  EXPECT_TRUE(spec.devices.empty());
  EXPECT_TRUE(spec.module.empty());
}

TEST(Spec, MixesAndSingleDevices) {
  const DeviceSpec mix = parse(R"({"device_name": ["cpu[0]", "opencl:0/2[1]"]})");
  EXPECT_EQ(mix.kind, "");
  EXPECT_THAT(mix.devices, ElementsAre("cpu[0]", "opencl:0/2[1]"));
  const DeviceSpec one = parse(R"({"device_name": "reference:3"})");
  EXPECT_EQ(one.kind, "reference");
  EXPECT_THAT(one.devices, ElementsAre("reference:3"));
  EXPECT_EQ(parse(R"({"device_name": ["cpu[0]", "cpu[1]"]})").kind, "cpu");
}

TEST(Spec, EveryFieldIsChecked) {
  EXPECT_THAT(problem_of("["), HasSubstr("not valid JSON"));
  EXPECT_THAT(problem_of("[]"), HasSubstr("object"));
  EXPECT_THAT(problem_of("{}"), HasSubstr("no 'device_name'"));
  EXPECT_THAT(problem_of(R"({"device_name": 3})"), HasSubstr("'device_name' is 3"));
  EXPECT_THAT(problem_of(R"({"device_name": " "})"), HasSubstr("'device_name'"));
  EXPECT_THAT(problem_of(R"({"device_name": []})"), HasSubstr("'device_name' is []"));
  EXPECT_THAT(problem_of(R"({"device_name": ["a:0", "a:0"]})"), HasSubstr("a:0 twice"));
  EXPECT_THAT(problem_of(R"({"device_name": "a", "manual_sed": true})"),
              testing::AllOf(HasSubstr("'manual_sed'"), HasSubstr("manual_seed")));
  EXPECT_THAT(problem_of(R"({"device_name": "a:0", "manual_seed": 1})"),
              HasSubstr("'manual_seed' is 1, expected true or false"));
  EXPECT_THAT(problem_of(R"({"device_name": "a"})"), HasSubstr("device_count"));
  EXPECT_THAT(problem_of(R"({"device_name": "a", "devices": ["b:0"]})"), HasSubstr("b:0"));
  EXPECT_THAT(problem_of(R"({"device_name": "a:0", "devices": ["a:0"]})"), HasSubstr("kind"));
  EXPECT_THAT(problem_of(R"({"device_name": ["a:0"], "devices": ["a:0"]})"),
              HasSubstr("'devices'"));
  EXPECT_THAT(problem_of(R"({"device_name": "a:0", "tolerance": -1})"), HasSubstr("0 to 1"));
  EXPECT_THAT(problem_of(R"({"device_name": "a:0", "tolerance": "1"})"), HasSubstr("'tolerance'"));
  EXPECT_THAT(problem_of(R"({"device_name": "a:0", "module": 7})"), HasSubstr("'module' is 7"));
  EXPECT_THAT(problem_of(R"({"device_name": "a:0", "device_name": "a:1"})"),
              HasSubstr("device_name"));
}

TEST(Spec, FilesThatAreNotThere) {
  EXPECT_THROW(read_device_spec("/nowhere/spec.json"), Error);
  EXPECT_THROW(read_device_spec("/"), Error);
}

}  // namespace
}  // namespace quintet::conformance
