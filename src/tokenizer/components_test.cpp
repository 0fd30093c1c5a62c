// The components of tokenizer.json, each against what tokenizers 0.23.3 gives for the same input.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "tokenizer/base64.h"
#include "tokenizer/charsmap.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/testing.h"
#include "tokenizer/tokenizer_json.h"

namespace quintet {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string normalize(const char* spec, const std::string& text) {
  return make_normalizer(json::parse(spec), "t.json")->apply(trace_utf8(text)).text;
}

std::vector<std::string> split(const char* spec, const std::string& text) {
  std::vector<std::string> result;
  make_pre_tokenizer(json::parse(spec), "t.json")
      ->cut(trace_utf8(text), {0, text.size()}, [&](const TracedText& in, WordRange word) {
        result.push_back(in.text.substr(word.begin, word.end - word.begin));
      });
  return result;
}

std::vector<int32_t> encode(const json& spec, const std::string& text) {
  return parse_tokenizer_json(spec.dump(), "t.json")->encode(text, true);
}

std::string message_of(const json& spec) {
  try {
    parse_tokenizer_json(spec.dump(), "t.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kFile);
    return error.what();
  }
  return "no error";
}

TEST(Normalizer, Strip) {
  const char* right = R"({"type": "Strip", "strip_left": false, "strip_right": true})";
  EXPECT_EQ(normalize(right, "  日本 \u3000"), "  日本");
  EXPECT_EQ(normalize(R"({"type": "Strip", "strip_left": true, "strip_right": true})", "\u3000日 "),
            "日");
  EXPECT_EQ(normalize(right, "   "), "");
}

TEST(Normalizer, Replace) {
  EXPECT_EQ(normalize(R"({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "_"})",
                      "a b  c   d"),
            "a b_c_d");
  const char* trim = R"({"type": "Replace", "pattern": {"Regex": "\\A +| +\\z"}, "content": ""})";
  EXPECT_EQ(normalize(trim, "  a  b   "), "a  b");
  EXPECT_EQ(normalize(trim, "   "), "");
  EXPECT_EQ(normalize(R"({"type": "Replace", "pattern": {"String": "aa"}, "content": "b"})", "aaa"),
            "ba");
  EXPECT_EQ(normalize(R"({"type": "Replace", "pattern": {"Regex": "\\s"}, "content": "_"})",
                      "a\u3000b\tc"),
            "a_b_c");
}

TEST(Normalizer, UnicodeForms) {
  EXPECT_EQ(normalize(R"({"type": "NFC"})", "e\u0301 \u212B"), "\u00E9 \u00C5");
  EXPECT_EQ(normalize(R"({"type": "NFD"})", "\u00E9\uAC01"), "e\u0301\u1100\u1161\u11A8");
  EXPECT_EQ(normalize(R"({"type": "NFKC"})", "\uFB01\u2460\uFF21"), "fi1A");
  EXPECT_EQ(normalize(R"({"type": "NFKD"})", "\u1E9B\u0323"), "s\u0323\u0307");
  EXPECT_EQ(normalize(R"({"type": "Lowercase"})", "ÀΣ\u0130"), "àσi\u0307");
}

TEST(Normalizer, SequenceAndPrepend) {
  EXPECT_EQ(normalize(R"({"type": "Sequence", "normalizers": [
      {"type": "Prepend", "prepend": "_"}, {"type": "Nmt"}]})",
                      "a\x07\tb"),
            "_a b");
  EXPECT_EQ(normalize(R"({"type": "Prepend", "prepend": "_"})", ""), "");
}

TEST(Normalizer, KeepsTrackOfTheOriginalBytes) {
  const auto normalizer = make_normalizer(
      json::parse(R"({"type": "Replace", "pattern": {"Regex": " +"}, "content": "__"})"), "t.json");
  const TracedText text = normalizer->apply(trace_utf8("ä   b"));
  EXPECT_EQ(text.text, "ä__b");
  EXPECT_EQ(text.origin_of(0, 2).end, 2U);
  EXPECT_EQ(text.origin_of(2, 4).begin, 2U);
  EXPECT_EQ(text.origin_of(2, 4).end, 5U);
  EXPECT_EQ(text.origin_of(4, 5).begin, 5U);
}

TEST(PreTokenizer, Metaspace) {
  const char* first = R"({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first"})";
  EXPECT_THAT(split(first, "Hey  you "), ElementsAre("▁Hey", "▁", "▁you", "▁"));
  EXPECT_THAT(split(first, " ▁ x"), ElementsAre("▁", "▁", "▁x"));
  const char* whole =
      R"({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": false})";
  EXPECT_THAT(split(whole, "Hey  you "), ElementsAre("▁Hey▁▁you▁"));
  const char* old = R"({"type": "Metaspace", "replacement": "▁", "add_prefix_space": true})";
  EXPECT_THAT(split(old, "a b"), ElementsAre("▁a", "▁b"));
  const char* never = R"({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "never"})";
  EXPECT_THAT(split(never, "Hey  you"), ElementsAre("Hey", "▁", "▁you"));
}

TEST(PreTokenizer, MetaspaceFirstWithinASequenceMarksOnlyTheTextsBeginning) {
  const char* spec = R"({"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"},
      {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": true}]})";
  EXPECT_THAT(split(spec, "Hey  you "), ElementsAre("▁Hey", "you"));
  EXPECT_THAT(split(spec, " Hey▁▁you"), ElementsAre("Hey", "▁", "▁you"));
  EXPECT_THAT(split(spec, "  "), IsEmpty());
}

TEST(PreTokenizer, SplitBehaviors) {
  const auto split_as = [](const std::string& behavior, bool invert = false) {
    const json spec = {{"type", "Split"},
                       {"pattern", {{"Regex", "a+"}}},
                       {"behavior", behavior},
                       {"invert", invert}};
    return split(spec.dump().c_str(), "xaaxaay");
  };
  EXPECT_THAT(split_as("MergedWithNext"), ElementsAre("x", "aax", "aay"));
  EXPECT_THAT(split_as("MergedWithPrevious"), ElementsAre("xaa", "xaa", "y"));
  EXPECT_THAT(split_as("Isolated"), ElementsAre("x", "aa", "x", "aa", "y"));
  EXPECT_THAT(split_as("Removed"), ElementsAre("x", "x", "y"));
  EXPECT_THAT(split_as("Removed", true), ElementsAre("aa", "aa"));
  EXPECT_THAT(split(R"({"type": "Whitespace"})", "Hi, the_re!! é"),
              ElementsAre("Hi", ",", "the_re", "!!", "é"));
}

TEST(AddedTokens, StripAndSingleWord) {
  json spec = testing::small_tokenizer_json();
  const auto with = [&](json properties) {
    spec["added_tokens"] = json::array();
    for (const char* content : {"<x>", "Q"}) {
      json token = properties;
      token["content"] = content;
      token["normalized"] = false;
      spec["added_tokens"].push_back(token);
    }
    return spec;
  };
  // "<x>" is 9, "Q" is 10.
  EXPECT_THAT(encode(with({{"lstrip", true}}), "a <x> a"), ElementsAre(7, 9, 7, 1));
  EXPECT_THAT(encode(with({{"rstrip", true}}), "a <x> a"), ElementsAre(7, 3, 9, 7, 1));
  EXPECT_THAT(encode(with({{"single_word", true}}), "a_<x>"), ElementsAre(7, 2, 1));
  EXPECT_THAT(encode(with({{"single_word", true}}), "ab <x>a"), ElementsAre(7, 5, 3, 2, 4, 1));
  EXPECT_THAT(encode(with(json::object()), "aQb<x>"), ElementsAre(7, 10, 3, 5, 9, 1));
}

TEST(AddedTokens, NormalizedOnesAreFoundInTheNormalizedText) {
  json spec = testing::small_tokenizer_json();
  spec["normalizer"] = {{"type", "Lowercase"}};
  spec["added_tokens"] = {{{"content", "<X>"}, {"normalized", true}}};
  EXPECT_THAT(encode(spec, "A<x>b<X>"), ElementsAre(7, 9, 3, 5, 9, 1));
  spec["added_tokens"][0]["normalized"] = false;
  EXPECT_THAT(encode(spec, "<x><X>"), ElementsAre(3, 2, 9, 1));
}

TEST(Unigram, TakesTheBestWayAndJoinsUnknownCharacters) {
  const json spec = testing::small_tokenizer_json();
  EXPECT_THAT(encode(spec, "ab"), ElementsAre(7, 5, 1));      // ▁a b, not ▁ ab
  EXPECT_THAT(encode(spec, "cab"), ElementsAre(3, 8, 6, 1));  // ab costs less than a b
  EXPECT_THAT(encode(spec, "xyzc xy"), ElementsAre(3, 2, 8, 3, 2, 1));
  EXPECT_THAT(encode(spec, ""), ElementsAre(1));
}

TEST(Unigram, OfEqualWaysTheOneWithTheLongestLastPieceCounts) {
  json spec = testing::small_tokenizer_json();
  spec["pre_tokenizer"] = nullptr;
  spec["model"]["vocab"] =
      json::parse(R"([["<pad>", 0], ["</s>", 0], ["<unk>", 0], ["a", -1], ["aa", -2]])");
  EXPECT_THAT(encode(spec, "aaa"), ElementsAre(3, 4, 1));
}

TEST(Unigram, OfEqualPiecesTheLastCounts) {
  json spec = testing::small_tokenizer_json();
  spec["pre_tokenizer"] = nullptr;
  spec["model"]["vocab"] =
      json::parse(R"([["<pad>", 0], ["</s>", 0], ["<unk>", 0], ["a", -1], ["a", -5]])");
  EXPECT_THAT(encode(spec, "a"), ElementsAre(4, 1));
}

TEST(Unigram, WithoutUnkAnUnknownCharacterIsAnErrorOfTheRecord) {
  json spec = testing::small_tokenizer_json();
  spec["model"]["unk_id"] = nullptr;
  const auto tokenizer = parse_tokenizer_json(spec.dump(), "t.json");
  EXPECT_THAT(tokenizer->encode("ab", true), ElementsAre(7, 5, 1));
  EXPECT_EQ(tokenizer->unk_id(), -1);
  try {
    tokenizer->encode("az", true);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kRecord);
  }
}

TEST(TokenizerJson, NamesFileAndComponentOfWhatItDoesNotKnow) {
  json spec = testing::small_tokenizer_json();
  spec["normalizer"] = {{"type", "BertNormalizer"}};
  EXPECT_THAT(message_of(spec), HasSubstr("t.json: normalizer: 'BertNormalizer'"));
  spec = testing::small_tokenizer_json();
  spec["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", {{{"type", "Digits"}}}}};
  EXPECT_THAT(message_of(spec), HasSubstr("t.json: pre_tokenizer Sequence: 'Digits'"));
  spec["pre_tokenizer"] = {
      {"type", "Split"}, {"pattern", {{"Regex", "a(?!b)"}}}, {"behavior", "Isolated"}};
  EXPECT_THAT(message_of(spec), HasSubstr("the pattern 'a(?!b)' is not supported"));
  spec = testing::small_tokenizer_json();
  spec["model"] = {{"type", "WordPiece"}};
  EXPECT_THAT(message_of(spec), HasSubstr("t.json: model: 'WordPiece'"));
  spec = testing::small_tokenizer_json();
  spec["post_processor"] = {{"type", "BertProcessing"}};
  EXPECT_THAT(message_of(spec), HasSubstr("t.json: post_processor: 'BertProcessing'"));
}

TEST(TokenizerJson, RefusesVocabulariesOutOfRange) {
  json spec = testing::small_tokenizer_json();
  spec["model"]["unk_id"] = 9;
  EXPECT_THAT(message_of(spec), HasSubstr("unk_id 9 is outside"));
  spec["model"]["unk_id"] = -1;
  EXPECT_THAT(message_of(spec), HasSubstr("'unk_id' is -1"));
  spec = testing::small_tokenizer_json();
  spec["model"]["vocab"] = json::array();
  EXPECT_THAT(message_of(spec), HasSubstr("0 pieces"));
  spec["model"]["vocab"] = json::parse(R"([["a", null]])");
  EXPECT_THAT(message_of(spec), HasSubstr("[piece, score] expected"));
  spec["model"]["vocab"] = json::array({json::array({std::string(5000, 'a'), 0})});
  spec["model"]["unk_id"] = 0;
  EXPECT_THAT(message_of(spec), HasSubstr("5000 bytes"));
  spec = testing::small_tokenizer_json();
  spec["post_processor"]["special_tokens"]["</s>"]["ids"] = {77};
  EXPECT_THAT(message_of(spec), HasSubstr("token 77"));
}

TEST(TokenizerJson, BoundsWhatNormalizationMakesOfAText) {
  json spec = testing::small_tokenizer_json();
  const json more = {
      {"type", "Replace"}, {"pattern", {{"String", "o"}}}, {"content", std::string(1000, 'o')}};
  spec["normalizer"] = {{"type", "Sequence"},
                        {"normalizers", {more, more, more, more, more, more}}};
  const auto tokenizer = parse_tokenizer_json(spec.dump(), "t.json");
  try {
    tokenizer->encode("foo", true);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kFile);
    EXPECT_THAT(error.what(), HasSubstr("t.json: normalizer: makes more than 65728 bytes"));
  }
  EXPECT_THAT(tokenizer->encode("a", true), ElementsAre(7, 1));
  spec["added_tokens"] = {{{"content", "oo"}, {"normalized", true}}};
  EXPECT_THAT(message_of(spec), HasSubstr("t.json: normalizer: makes more than"));
}

TEST(TokenizerJson, ATextCutAnywhereIsAnError) {
  const std::string text = testing::small_tokenizer_json().dump();
  for (size_t size = 0; size < text.size(); ++size) {
    EXPECT_THROW(parse_tokenizer_json(std::string_view(text).substr(0, size), "t.json"), Error);
  }
  EXPECT_THROW(parse_tokenizer_json("[]", "t.json"), Error);
}

TEST(Charsmap, GarbageIsAnErrorOrMapsSomething) {
  EXPECT_THROW(Charsmap("", "t.json"), Error);
  EXPECT_THROW(Charsmap(std::string("\xFF\xFF\xFF\xFF", 4), "t.json"), Error);
  EXPECT_THROW(Charsmap(std::string("\0\0\0\0\xC3", 5), "t.json"), Error);
  uint32_t state = 12345;
  const auto next = [&] {
    return static_cast<char>((state = state * 1664525U + 1013904223U) >> 24);
  };
  for (int round = 0; round < 200; ++round) {
    std::string blob("\0\4\0\0", 4);  // a trie of 256 units
    while (blob.size() < 4 + 1024) blob += next();
    blob += "abc";
    const Charsmap map(blob, "t.json");
    std::string text;
    while (text.size() < 500) text += next();
    map.apply(trace_utf8(text));
  }
}

TEST(Base64, DecodesWholeGroupsOnly) {
  EXPECT_EQ(decode_base64("", "t.json"), "");
  EXPECT_EQ(decode_base64("YQ==", "t.json"), "a");
  EXPECT_EQ(decode_base64("YWI=", "t.json"), "ab");
  EXPECT_EQ(decode_base64("YWJj", "t.json"), "abc");
  for (const char* bad : {"YQ=", "YQ", "Y===", "YQ=a", "Y*==", "YQ==YQ=="}) {
    EXPECT_THROW(decode_base64(bad, "t.json"), Error) << bad;
  }
}

}  // namespace
}  // namespace quintet
