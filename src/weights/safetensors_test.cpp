#include "weights/safetensors.h"

#include <sys/resource.h>

#include <ctime>

#include "core/sanitized.h"
#include "weights/test_files.h"

namespace quintet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string problem(const std::string& file) {
  return problem_of([&] { parse_safetensors(bytes_of(file), "x.safetensors"); });
}

// One tensor "a" with this dtype, shape and place over `size` bytes of data.
std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets,
                size_t size) {
  return safetensors_of(R"({"a":{"dtype":")" + dtype + R"(","shape":)" + shape +
                            R"(,"data_offsets":)" + offsets + "}}",
                        std::string(size, '\1'));
}

TEST(Safetensors, ReadsTensorsInAnyOrderOfTheHeader) {
  const std::string data = little_endian(1.5F) + little_endian(-2.0F) + little_endian(3.0F) +
                           std::string("\xC0\x3F\x00\x3C", 4);
  const std::string file = safetensors_of(
      R"({"__metadata__":{"format":"pt"},
          "brain":{"dtype":"BF16","shape":[1],"data_offsets":[12,14]},
          "scalar":{"data_offsets":[8,12],"shape":[],"dtype":"F32"},
          "none":{"dtype":"F32","shape":[2,0],"data_offsets":[8,8]},
          "half":{"dtype":"F16","shape":[1,1],"data_offsets":[14,16]},
          "row":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}}   )",
      data);
  const TensorFile read = parse_safetensors(bytes_of(file), "x");
  ASSERT_EQ(read.tensors.size(), 5U);
  EXPECT_THAT(values_of(tensor_in(read, "row")), ElementsAre(1.5F, -2.0F));
  EXPECT_THAT(tensor_in(read, "row").shape, ElementsAre(1, 2));
  EXPECT_THAT(values_of(tensor_in(read, "scalar")), ElementsAre(3.0F));
  EXPECT_TRUE(tensor_in(read, "scalar").shape.empty());
  EXPECT_THAT(tensor_in(read, "none").shape, ElementsAre(2, 0));
  EXPECT_EQ(tensor_in(read, "brain").dtype, DType::kBFloat16);
  EXPECT_THAT(values_of(tensor_in(read, "brain")), ElementsAre(1.5F));
  EXPECT_THAT(values_of(tensor_in(read, "half")), ElementsAre(1.0F));
}

TEST(Safetensors, PassesOverOtherTypes) {
  const TensorFile read = parse_safetensors(bytes_of(one("I64", "[2]", "[0,16]", 16)), "x");
  EXPECT_TRUE(read.tensors.empty());
  EXPECT_THAT(read.skipped, ElementsAre(testing::Pair("a", "is stored as I64")));
  EXPECT_EQ(problem(one("F4", "[4]", "[0,2]", 2)), "");
  EXPECT_THAT(problem(one("F4", "[3]", "[0,2]", 2)), HasSubstr("is F4 of [3] but has 2 bytes"));
}

TEST(Safetensors, AnEmptyHeaderIsFine) { EXPECT_EQ(problem(safetensors_of("{}", "")), ""); }

TEST(Safetensors, RefusesHeadersByName) {
  EXPECT_THAT(problem(""), HasSubstr("0 bytes, too short"));
  EXPECT_THAT(problem(little_endian(uint64_t{1} << 63) + "{}"), HasSubstr("at most 100000000"));
  EXPECT_THAT(problem(little_endian(uint64_t{1000}) + std::string(92, ' ')),
              HasSubstr("header of 1000 bytes in a file of 100"));
  EXPECT_THAT(problem(safetensors_of(" {}", "")), HasSubstr("does not start with '{'"));
  EXPECT_THAT(problem(safetensors_of("", "")), HasSubstr("does not start with '{'"));
  EXPECT_THAT(problem(safetensors_of("{} {}", "")),
              HasSubstr("header is not valid JSON at byte 4"));
  EXPECT_THAT(problem(safetensors_of("{\"a\xFF\":1}", "")), HasSubstr("not valid JSON"));
  EXPECT_THAT(problem(safetensors_of(R"({"__metadata__":{"a":1}})", "")),
              HasSubstr("__metadata__: a number"));
  EXPECT_THAT(problem(safetensors_of(R"({"__metadata__":{"a":"x","a":"y"}})", "")),
              HasSubstr("'a' stands twice"));
  EXPECT_THAT(problem(safetensors_of(R"({"__metadata__":{},"__metadata__":{}})", "")),
              HasSubstr("'__metadata__' stands twice"));
}

TEST(Safetensors, RefusesEntriesByName) {
  const std::string entry = R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  EXPECT_THAT(problem(safetensors_of("{\"a\":" + entry + ",\"a\":" + entry + "}", "1234")),
              HasSubstr("'a' stands twice"));
  EXPECT_THAT(
      problem(safetensors_of(
          R"({"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "1234")),
      HasSubstr("key 'dtype' stands twice"));
  EXPECT_THAT(problem(safetensors_of(R"({"a":{"dtype":"F32","shape":[1]}})", "1234")),
              HasSubstr("'a': lacks one of"));
  EXPECT_THAT(problem(safetensors_of(R"({"a":{"strides":[1]}})", "")),
              HasSubstr("unknown key 'strides'"));
  EXPECT_THAT(problem(safetensors_of(R"({"a":3})", "")), HasSubstr("'a': a number"));
  EXPECT_THAT(problem(one("F31", "[1]", "[0,4]", 4)), HasSubstr("unknown dtype 'F31'"));
  EXPECT_THAT(problem(one("F32", "[-1]", "[0,4]", 4)), HasSubstr("a negative number"));
  EXPECT_THAT(problem(one("F32", "[1.0]", "[0,4]", 4)), HasSubstr("the number 1.0"));
  EXPECT_THAT(problem(one("F32", "[[1]]", "[0,4]", 4)), HasSubstr("an array"));
  EXPECT_THAT(problem(one("F32", "[1]", "[0,4,8]", 4)), HasSubstr("has 3 numbers, expected 2"));
  EXPECT_THAT(problem(one("F32", "[18446744073709551615]", "[0,4]", 4)), HasSubstr("out of range"));
}

TEST(Safetensors, RefusesLayoutsByName) {
  EXPECT_THAT(problem(one("F32", "[3]", "[0,8]", 8)), HasSubstr("'a' is F32 of [3] but has 8"));
  EXPECT_THAT(problem(one("F32", "[2,9223372036854775807]", "[0,8]", 8)), HasSubstr("has 8 bytes"));
  EXPECT_THAT(problem(one("F32", "[4611686018427387904,4]", "[0,0]", 0)), HasSubstr("has 0 bytes"));
  EXPECT_THAT(problem(one("F32", "[2]", "[0,8]", 7)), HasSubstr("bytes 0 to 8 of 7"));
  EXPECT_THAT(problem(one("F32", "[2]", "[8,0]", 8)), HasSubstr("bytes 8 to 0"));
  EXPECT_THAT(problem(one("F32", "[1]", "[4,8]", 8)), HasSubstr("a hole"));
  EXPECT_THAT(problem(one("F32", "[2]", "[0,8]", 9)), HasSubstr("a tail"));
  EXPECT_THAT(problem(safetensors_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},
                                         "b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
                                     std::string(12, ' '))),
              HasSubstr("'b' starts at byte 4, an overlap"));
}

int64_t peak_kib() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

TEST(Safetensors, RefusesInLittleTimeAndMemory) {
  std::vector<std::string> files = {
      little_endian(~uint64_t{0}),
      safetensors_of(R"({"a":)" + std::string(100'000, '['), ""),
      safetensors_of(std::string(100'000, '{'), ""),
      one("F32", "[2,9223372036854775807]", "[0,8]", 8),
      safetensors_of("{\"" + std::string(1'000'000, 'a') + "\":1}", ""),
  };
  std::string names = "{";
  std::string metadata = R"({"__metadata__":{)";
  for (int i = 0; i < 600'000; ++i) {
    const std::string comma = i == 0 ? "" : ",";
    names += fmt::format(R"({}"t{}":{{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", comma, i);
    metadata += fmt::format(R"({}"k{}":"")", comma, i);
  }
  files.push_back(safetensors_of(names + "}", "1234"));
  files.push_back(safetensors_of(metadata + "}}", ""));
  // As many as are allowed, and the fault at the very end.
  files.push_back(safetensors_of(names.substr(0, names.find("\"t49998\"")) + "3}", "1234"));
  std::string ones = "[1";
  for (int i = 0; i < 1'000'000; ++i) ones += ",1";
  files.push_back(one("F32", ones + "]", "[0,8]", 8));
  for (const std::string& file : files) {
    const int64_t before = peak_kib();
    const std::clock_t start = std::clock();  // CPU time: other programs may hold the cores
    const std::string what = problem(file);
    EXPECT_NE(what, "");
    EXPECT_LT(what.size(), 400U);
    EXPECT_LT(std::clock() - start, kSanitized ? CLOCKS_PER_SEC : CLOCKS_PER_SEC / 10) << what;
    EXPECT_LT(peak_kib() - before, (kSanitized ? 500 : 50) * 1024) << what;
  }
}

}  // namespace
}  // namespace quintet
