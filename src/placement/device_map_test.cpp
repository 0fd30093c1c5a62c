#include "quintet/device_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "quintet/error.h"

namespace quintet {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string message(const std::function<void()>& work, ErrorKind kind = ErrorKind::kUsage) {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return {};
}

// Values of transformers.utils.model_parallel_utils.get_device_map, with names for its numbers.
TEST(DeviceMap, EvenSplitGivesCeilToEachInOrder) {
  EXPECT_EQ(
      get_device_map(12, {"cpu:0", "cpu:1", "cpu:2"}),
      (DeviceMap{{"cpu:0", {0, 1, 2, 3}}, {"cpu:1", {4, 5, 6, 7}}, {"cpu:2", {8, 9, 10, 11}}}));
  EXPECT_EQ(get_device_map(5, {"b", "a"}), (DeviceMap{{"b", {0, 1, 2}}, {"a", {3, 4}}}));
  EXPECT_EQ(get_device_map(6, {"a", "b", "c", "d"}),
            (DeviceMap{{"a", {0, 1}}, {"b", {2, 3}}, {"c", {4, 5}}}));
  EXPECT_EQ(get_device_map(1, {"a", "b"}), (DeviceMap{{"a", {0}}}));
}

TEST(DeviceMap, EvenSplitNeedsDevicesAndBlocks) {
  EXPECT_THAT(message([] { get_device_map(4, {}); }), HasSubstr("no devices"));
  EXPECT_THAT(message([] { get_device_map(0, {"a"}); }), HasSubstr("0 blocks"));
}

TEST(DeviceMap, AssertAcceptsWholeMaps) {
  assert_device_map({{"a", {0, 1, 2}}, {"b", {3, 4}}}, 5);
  assert_device_map({{"b", {3, 4}}, {"a", {0, 1, 2}}}, 5);
}

TEST(DeviceMap, AssertListsAllThreeFaultsAtOnce) {
  const auto text = message([] { assert_device_map({{"a", {0, 1, 1, 7}}, {"b", {1, 4, 9}}}, 6); });
  EXPECT_THAT(text, AllOf(HasSubstr("duplicate blocks: 1;"), HasSubstr("missing blocks: 2-3, 5;"),
                          HasSubstr("extra blocks: 7, 9")));
  EXPECT_THAT(message([] {
                assert_device_map({{"a", {0, 1}}}, 3);
              }),
              AllOf(HasSubstr("missing blocks: 2"), testing::Not(HasSubstr("extra"))));
  EXPECT_THAT(message([] {
                assert_device_map({{"a", {-1, 0, 1}}}, 2, "decoder");
              }),
              AllOf(HasSubstr("decoder device map"), HasSubstr("extra blocks: -1")));
}

TEST(DeviceMap, AssertRefusesWhatIsNotARunPerDevice) {
  EXPECT_THAT(message([] { assert_device_map({}, 2); }), HasSubstr("is empty"));
  EXPECT_THAT(message([] {
                assert_device_map({{"a", {0, 1}}, {"b", {}}}, 2);
              }),
              HasSubstr("'b' without blocks"));
  EXPECT_THAT(message([] {
                assert_device_map({{"a", {0}}, {"a", {1}}}, 2);
              }),
              HasSubstr("'a' twice"));
  EXPECT_THAT(message([] {
                assert_device_map({{"a", {0, 2}}, {"b", {1}}}, 3);
              }),
              HasSubstr("block 2 after block 0 on 'a'"));
  EXPECT_THAT(message([] {
                assert_device_map({{"a", {1, 0}}}, 2);
              }),
              HasSubstr("block 0 after block 1 on 'a'"));
  EXPECT_THAT(message([] {
                assert_device_map({{"a", {5, 0, 1, 2, 3, 4}}}, 6);
              }),
              HasSubstr("such as 0-5"));  // not 5-10: there are no such blocks
}

TEST(DeviceMap, AllThreeFaultsOfAWrittenMapAreListedAtOnce) {
  const auto map = parse_device_map(R"({"cpu[0]":[0,1,2],"cpu[1]":[2,3,9]})").encoder;
  EXPECT_THAT(message([&] { assert_device_map(map, 6, "encoder"); }),
              AllOf(HasSubstr("duplicate blocks: 2;"), HasSubstr("missing blocks: 4-5;"),
                    HasSubstr("extra blocks: 9")));
}

TEST(DeviceMap, ParsesRulesAndMaps) {
  EXPECT_EQ(parse_device_map("auto").rule, MapRule::kAuto);
  EXPECT_EQ(parse_device_map("even").rule, MapRule::kEven);
  const auto option = parse_device_map(R"({"cpu[1]": [2, 3], "cpu[0]": [0, 1]})");
  EXPECT_EQ(option.rule, MapRule::kGiven);
  EXPECT_FALSE(option.per_stack);
  EXPECT_EQ(option.encoder, (DeviceMap{{"cpu[0]", {0, 1}}, {"cpu[1]", {2, 3}}}));
  EXPECT_EQ(option.decoder, option.encoder);
}

TEST(DeviceMap, ParsesOneMapPerStack) {
  const auto option = parse_device_map(
      R"({"decoder": {"cpu:1": [0]}, "encoder": {"cpu:1": [2], "cpu:0": [0, 1]}})");
  EXPECT_TRUE(option.per_stack);
  EXPECT_EQ(option.encoder, (DeviceMap{{"cpu:0", {0, 1}}, {"cpu:1", {2}}}));
  EXPECT_EQ(option.decoder, (DeviceMap{{"cpu:1", {0}}}));
  EXPECT_TRUE(parse_device_map(R"({"encoder": {"a": [0]}})").decoder.empty());
  EXPECT_THAT(message([] { parse_device_map(R"({"encoder": {"a": [0]}, "cpu:0": [1]})"); }),
              HasSubstr("'cpu:0' stands beside a stack"));
  // Which blocks are listed is for assert_device_map(), which names all faults at once.
  EXPECT_EQ(parse_device_map(R"({"encoder": {"a": [0, 2, 2]}})").encoder,
            (DeviceMap{{"a", {0, 2, 2}}}));
}

TEST(StackMaps, AMapForEachStack) {
  const auto option =
      parse_device_map(R"({"encoder": {"a": [0, 1], "b": [2]}, "decoder": {"b": [0]}})");
  const StackMaps maps = stack_maps(option, 3, 1, {});
  EXPECT_EQ(maps.encoder, (DeviceMap{{"a", {0, 1}}, {"b", {2}}}));
  EXPECT_EQ(maps.decoder, (DeviceMap{{"b", {0}}}));
}

TEST(StackMaps, AMapWithoutStacksIsForAllThatTheModelHas) {
  const auto option = parse_device_map(R"({"a": [0, 1], "b": [2]})");
  const DeviceMap map = {{"a", {0, 1}}, {"b", {2}}};
  EXPECT_EQ(stack_maps(option, 3, 3, {}).encoder, map);
  EXPECT_EQ(stack_maps(option, 3, 3, {}).decoder, map);
  EXPECT_TRUE(stack_maps(option, 0, 3, {}).encoder.empty());
  EXPECT_EQ(stack_maps(option, 0, 3, {}).decoder, map);
  EXPECT_THAT(message([&] { stack_maps(option, 3, 1, {}); }),
              AllOf(HasSubstr("decoder device map does not hold each of blocks 0 once"),
                    HasSubstr("extra blocks: 1-2"), HasSubstr("3 encoder and 1 decoder blocks")));
}

TEST(StackMaps, EvenIsForEachStackByItself) {
  const StackMaps maps = stack_maps(parse_device_map("even"), 6, 2, {"a", "b"});
  EXPECT_EQ(maps.encoder, get_device_map(6, {"a", "b"}));
  EXPECT_EQ(maps.decoder, get_device_map(2, {"a", "b"}));
  EXPECT_TRUE(stack_maps(parse_device_map("even"), 0, 2, {"a"}).encoder.empty());
}

TEST(StackMaps, WrongStacksAndBlocksAreNamed) {
  const auto both = parse_device_map(R"({"encoder": {"a": [0, 1]}, "decoder": {"a": [0, 1, 3]}})");
  EXPECT_THAT(message([&] { stack_maps(both, 2, 3, {}); }),
              AllOf(HasSubstr("decoder device map"), HasSubstr("missing blocks: 2"),
                    HasSubstr("extra blocks: 3")));
  EXPECT_THAT(message([&] { stack_maps(both, 0, 3, {}); }),
              AllOf(HasSubstr("a map for the encoder"), HasSubstr("this model has none")));
  EXPECT_THAT(message([&] { stack_maps(both, 2, 0, {}); }), HasSubstr("a map for the decoder"));
  const auto half = parse_device_map(R"({"encoder": {"a": [0, 1]}})");
  EXPECT_THAT(message([&] { stack_maps(half, 2, 3, {}); }),
              AllOf(HasSubstr("no map for the decoder"), HasSubstr("blocks are 0-2"),
                    HasSubstr("add \"decoder\": {...}")));
  EXPECT_THAT(message([&] { stack_maps(half, 0, 3, {}); }), HasSubstr("a map for the encoder"));
}

TEST(DeviceMap, ParseErrorsSayWhatIsMeant) {
  for (const char* text : {"{0: [0, 1]}", R"({"0": [0, 1]})"}) {
    EXPECT_THAT(message([&] { parse_device_map(text); }),
                AllOf(HasSubstr("devices have names"), HasSubstr("cpu:0")));
  }
  for (const char* text : {R"({"": [0]})", R"({" ": [0]})"}) {
    EXPECT_THAT(message([&] { parse_device_map(text); }),
                AllOf(HasSubstr("without a name"), HasSubstr("\"cpu:0\"")));
  }
  EXPECT_THAT(message([] { parse_device_map("{}"); }), HasSubstr("is empty"));
  EXPECT_THAT(message([] { parse_device_map(""); }), HasSubstr("use auto, even"));
  EXPECT_THAT(message([] { parse_device_map("evn"); }), HasSubstr("evn: no such file; use auto"));
  EXPECT_THAT(message([] { parse_device_map("[1]"); }), HasSubstr("expected an object"));
  EXPECT_THAT(message([] { parse_device_map(R"({"a": []})"); }), HasSubstr("without blocks"));
  EXPECT_THAT(message([] { parse_device_map(R"({"a": "0-3"})"); }), HasSubstr("type string"));
  EXPECT_THAT(message([] { parse_device_map(R"({"a": [0.5]})"); }), HasSubstr("lists 0.5"));
  EXPECT_THAT(message([] { parse_device_map(R"({"a": [-1]})"); }), HasSubstr("lists -1"));
  EXPECT_THAT(message([] { parse_device_map(R"({"a": [18446744073709551615]})"); }),
              HasSubstr("lists 18446744073709551615"));
  EXPECT_THAT(message([] { parse_device_map(R"({"a": [0], "a": [1]})"); }), HasSubstr("twice"));
  EXPECT_THAT(message([] { parse_device_map(R"({"a": [0])"); }), HasSubstr("not valid JSON"));
}

TEST(DeviceMap, ReadsFilesAndWritesWhatItReads) {
  const DeviceMap map = {{"cpu[0,2]", {0, 1}}, {"a \"b\"", {2}}};
  const auto file = std::filesystem::path(testing::TempDir()) / "quintet device map.json";
  std::ofstream(file) << device_map_text(map);
  EXPECT_EQ(parse_device_map(file.string()).encoder, map);
  std::ofstream(file) << "{\"cpu:0\": 3}";
  EXPECT_THAT(message([&] { parse_device_map(file.string()); }, ErrorKind::kFile),
              AllOf(HasSubstr(file.string()), HasSubstr("'cpu:0'")));
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace quintet
