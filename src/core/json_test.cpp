#include "core/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"

namespace quintet {
namespace {

std::string problem_of(const std::string& text, JsonLimits limits = {}) {
  try {
    parse_json(text, "x.json", limits);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kFile);
    return error.what();
  }
  return "";
}

TEST(Json, ReadsPlainValues) {
  EXPECT_EQ(parse_json(R"({"a": [1, {"a": 2}], "b": {"a": 3}})", "x")["a"][1]["a"], 2);
}

TEST(Json, RefusesByName) {
  EXPECT_THAT(problem_of("{\"a\": 1, \"a\": 2}"), testing::HasSubstr("'a' stands twice"));
  EXPECT_THAT(problem_of("{\"a\": "), testing::HasSubstr("not valid JSON"));
  EXPECT_THAT(problem_of("{} trailing"), testing::HasSubstr("not valid JSON"));
  EXPECT_THAT(problem_of("{\n\"a\": }"),
              testing::StartsWith("x.json: not valid JSON at byte 8: unex"));
  EXPECT_THAT(problem_of("[1e999]"), testing::HasSubstr("x.json: not valid JSON"));
  EXPECT_THAT(problem_of("[\"\xFF\"]"),
              testing::HasSubstr("not valid JSON at byte 3: invalid string"));
  for (const char* text : {"", "[1,]", "{]", "\"\\q\"", "[1e999]", "nul", "\"\x01\""}) {
    EXPECT_THAT(problem_of(text), testing::Not(testing::HasSubstr("json.exception"))) << text;
    EXPECT_THAT(problem_of(text), testing::Not(testing::HasSubstr(" at line "))) << text;
  }
  EXPECT_THAT(problem_of(std::string(100000, '[')), testing::HasSubstr("deeper than 64"));
  EXPECT_THAT(problem_of("[1, 2, 3]", {.max_bytes = 4}), testing::HasSubstr("at most 4"));
}

TEST(Json, DepthAtTheLimitIsFine) {
  EXPECT_EQ(problem_of(std::string(64, '[') + std::string(64, ']')), "");
  EXPECT_NE(problem_of(std::string(65, '[') + std::string(65, ']')), "");
}

}  // namespace
}  // namespace quintet
