// Byte-level BPE against what tokenizers 0.23.3 gives for the same files.
#include "tokenizer/bpe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "core/error.h"
#include "tokenizer/byte_level.h"
#include "tokenizer/testing.h"
#include "tokenizer/tokenizer_json.h"
#include "tokenizer/unicode_class.h"

namespace quintet {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Letters, their spaces, and a few pairs of them; no byte but theirs.
json small_bpe() {
  return json::parse(R"({
    "added_tokens": [],
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
    "post_processor": null,
    "model": {"type": "BPE",
      "vocab": {"a": 0, "b": 1, "c": 2, "Ġ": 3, "ab": 4, "bc": 5, "abc": 6, "aa": 7, "aaaa": 8,
                "Ġa": 9, "?": 10},
      "merges": ["b c", "a b", "a bc", "a a", "aa aa", "Ġ a"]}})");
}

std::vector<int32_t> encode(const json& spec, const std::string& text) {
  return parse_tokenizer_json(spec.dump(), "t.json")->encode(text, true);
}

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kFile);
    return error.what();
  }
  return "no error";
}

std::string message_of(const json& spec) {
  return message_of([&] { parse_tokenizer_json(spec.dump(), "t.json"); });
}

std::vector<std::string> words(const std::string& text) {
  std::vector<std::string> result;
  make_byte_level(false, true)
      ->cut(trace_utf8(text), {0, text.size()}, [&](const TracedText& in, WordRange word) {
        result.push_back(*byte_level_bytes(in.text.substr(word.begin, word.end - word.begin)));
      });
  return result;
}

class OffsetsOfReference : public ::testing::TestWithParam<const char*> {};

TEST_P(OffsetsOfReference, AreEqual) {
  const auto tokenizer = load_tokenizer(testing::fixture(GetParam()));
  for (const auto& entry : parse_json_file(testing::fixture(GetParam()) / "cases.json")) {
    std::vector<uint32_t> offsets;
    for (const Token& token : tokenizer->encode_tokens(entry["text"].get<std::string>(), true)) {
      offsets.insert(offsets.end(), {token.begin, token.end});
    }
    EXPECT_EQ(offsets, entry["offsets"].get<std::vector<uint32_t>>()) << entry["text"];
  }
}

INSTANTIATE_TEST_SUITE_P(Folders, OffsetsOfReference,
                         ::testing::Values("gpt2_files", "gpt2_prefix_space"),
                         [](const auto& info) { return std::string(info.param); });

TEST(ByteLevel, EveryByteHasACharacter) {
  for (int byte = 0; byte < 256; ++byte) {
    const auto character = byte_level_character(static_cast<unsigned char>(byte));
    EXPECT_EQ(byte_level_bytes(character), std::string(1, static_cast<char>(byte)));
  }
  EXPECT_EQ(byte_level_character(' '), "\u0120");
  EXPECT_EQ(byte_level_character('\n'), "\u010A");
  EXPECT_EQ(byte_level_character(0xAD), "\u0143");
  EXPECT_EQ(byte_level_character(0xE9), "\u00E9");
  EXPECT_EQ(byte_level_bytes("a b"), std::nullopt);
  EXPECT_EQ(byte_level_bytes("日"), std::nullopt);
}

TEST(ByteLevel, CutsAsThePatternDoes) {
  EXPECT_THAT(words("Hello world's 42nd"), ElementsAre("Hello", " world", "'s", " 42", "nd"));
  EXPECT_THAT(words("a  \n b  "), ElementsAre("a", "  \n", " b", "  "));
  EXPECT_THAT(words("a\n\nb\tc"), ElementsAre("a", "\n", "\n", "b", "\t", "c"));
  EXPECT_THAT(words("we'll ''re I'M 'tis"),
              ElementsAre("we", "'ll", " ''", "re", " I", "'", "M", " '", "tis"));
  EXPECT_THAT(words("e\u0301 \u3000x \u00BD\u2167"),
              ElementsAre("e", "\u0301", " ", "\u3000", "x", " \u00BD\u2167"));
  EXPECT_THAT(words(" "), ElementsAre(" "));
}

TEST(ByteLevel, ClassesAreThoseOfUnicode16) {
  int letters = 0;
  int numbers = 0;
  for (int32_t c = 0; c <= 0x10FFFF; ++c) {
    letters += is_letter(c) ? 1 : 0;
    numbers += is_number(c) ? 1 : 0;
  }
  EXPECT_EQ(letters, 141028);
  EXPECT_EQ(numbers, 1911);
  EXPECT_TRUE(is_letter(0x10D4A));  // Garay, of 2024
  EXPECT_TRUE(is_number(0x10D40));
  EXPECT_FALSE(is_letter(0x301));
}

TEST(ByteLevel, APrefixSpaceIsPutBeforeEveryTextBetweenAddedTokens) {
  json spec = small_bpe();
  spec["pre_tokenizer"]["add_prefix_space"] = true;
  spec["added_tokens"] = {{{"content", "<x>"}, {"special", true}, {"normalized", false}}};
  EXPECT_THAT(encode(spec, "a<x>b a"), ElementsAre(9, 11, 3, 1, 9));
  EXPECT_THAT(encode(spec, " a<x>"), ElementsAre(9, 11));
  EXPECT_THAT(encode(spec, ""), IsEmpty());
  spec["pre_tokenizer"]["use_regex"] = false;
  EXPECT_THAT(encode(spec, "a a"), ElementsAre(9, 9));
}

TEST(ByteLevel, OffsetsLeaveSpacesOutWhereThePostProcessorTrims) {
  json spec = small_bpe();
  const auto offsets = [&](bool keeps_first) {
    spec["post_processor"] = {
        {"type", "ByteLevel"}, {"trim_offsets", true}, {"add_prefix_space", keeps_first}};
    std::string result;
    for (const Token& t :
         parse_tokenizer_json(spec.dump(), "t.json")->encode_tokens(" a a ", true)) {
      result += fmt::format("{}-{} ", t.begin, t.end);
    }
    return result;
  };
  EXPECT_EQ(offsets(true), "0-2 3-4 5-5 ");
  EXPECT_EQ(offsets(false), "1-2 3-4 5-5 ");
}

TEST(Bpe, MergesByRankAndFromTheLeft) {
  EXPECT_THAT(encode(small_bpe(), "abc"), ElementsAre(6));  // bc first, then a bc
  EXPECT_THAT(encode(small_bpe(), "abab"), ElementsAre(4, 4));
  EXPECT_THAT(encode(small_bpe(), "aaaaa"), ElementsAre(8, 0));
  EXPECT_THAT(encode(small_bpe(), "aaaaaaa"), ElementsAre(8, 7, 0));
  json spec = small_bpe();
  spec["model"]["merges"].push_back("b c");  // given twice, the last counts
  EXPECT_THAT(encode(spec, "abc"), ElementsAre(4, 2));
  for (json& merge : spec["model"]["merges"]) {
    const auto text = merge.get<std::string>();
    const size_t space = text.find(' ');
    merge = {text.substr(0, space), text.substr(space + 1)};
  }
  EXPECT_THAT(encode(spec, "abc"), ElementsAre(4, 2));
}

TEST(Bpe, WordsThatArePiecesMayStayWhole) {
  json spec = small_bpe();
  spec["model"]["merges"] = {"a b"};
  EXPECT_THAT(encode(spec, "abc bc"), ElementsAre(4, 2, 3, 1, 2));
  spec["model"]["ignore_merges"] = true;
  EXPECT_THAT(encode(spec, "abc bc"), ElementsAre(6, 3, 1, 2));
}

TEST(Bpe, UnknownCharactersAreLostOrTheUnknownToken) {
  json spec = small_bpe();
  EXPECT_THAT(encode(spec, "axxbc"), ElementsAre(6));  // a meets bc
  spec["model"]["unk_token"] = "?";
  EXPECT_THAT(encode(spec, "axxbc"), ElementsAre(0, 10, 10, 5));
  spec["model"]["fuse_unk"] = true;
  EXPECT_THAT(encode(spec, "axxbc"), ElementsAre(0, 10, 5));
  spec["model"]["vocab"]["<0x78>"] = 11;
  spec["model"]["byte_fallback"] = true;
  EXPECT_THAT(encode(spec, "xay"), ElementsAre(11, 0, 10));
}

TEST(Bpe, AHugeWordTakesLittleTime) {
  const auto tokenizer = load_tokenizer(testing::fixture("gpt2_files"));
  json spec = small_bpe();
  const auto small = parse_tokenizer_json(spec.dump(), "t.json");
  std::string word;
  while (word.size() < 4'000'000) word += "thequickbrownfox"[word.size() * 7919 % 16];
  const auto start = std::chrono::steady_clock::now();
  EXPECT_GT(tokenizer->encode(word, true).size(), word.size() / 8);
  EXPECT_EQ(small->encode(std::string(4'000'000, 'a'), true).size(), 1'000'000U);
  EXPECT_EQ(tokenizer->encode(std::string(4'000'000, ' '), true).size(), 4'000'000U);
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 30);
}

TEST(Bpe, NamesWhatIsWrongWithAFile) {
  const auto with = [](const char* key, const json& value) {
    json spec = small_bpe();
    spec["model"][key] = value;
    return message_of(spec);
  };
  EXPECT_THAT(with("merges", {"a z"}), HasSubstr("t.json: model BPE: merge 1 needs 'z'"));
  EXPECT_THAT(with("merges", {"a b", "c a"}), HasSubstr("merge 2 needs 'ca'"));
  EXPECT_THAT(with("merges", {"ab"}), HasSubstr("merge 1 is 'ab', two pieces"));
  EXPECT_THAT(with("merges", {"a b c"}), HasSubstr("two pieces"));
  EXPECT_THAT(with("merges", {{"a"}}), HasSubstr("two pieces"));
  EXPECT_THAT(with("merges", "a b"), HasSubstr("'merges' must be a list"));
  EXPECT_THAT(with("vocab", json::object()), HasSubstr("1 ... 10000000 pieces"));
  EXPECT_THAT(with("vocab", {{"a", -1}}), HasSubstr("'a' is -1"));
  EXPECT_THAT(with("vocab", {{"a", 1}, {"b", 1}}), HasSubstr("id 1 belongs to"));
  EXPECT_THAT(with("vocab", {{std::string(5000, 'a'), 1}}), HasSubstr("5000 bytes"));
  EXPECT_THAT(with("dropout", 0.1), HasSubstr("'dropout' is 0.1"));
  EXPECT_THAT(with("end_of_word_suffix", "</w>"), HasSubstr("'end_of_word_suffix' is \"</w>\""));
  EXPECT_THAT(with("unk_token", "<unk>"), HasSubstr("unk_token '<unk>' is not"));
}

TEST(Bpe, MergesOfAFile) {
  const auto merges = parse_merges("#version: 0.2\na b\r\n\nab c", "m.txt");
  EXPECT_THAT(merges, ElementsAre(std::pair("a", "b"), std::pair("ab", "c")));
  EXPECT_THAT(message_of([] { parse_merges("a b\nabc\n", "m.txt"); }),
              HasSubstr("m.txt: merge 2 is 'abc'"));
  EXPECT_THAT(parse_merges("", "m.txt"), IsEmpty());
}

}  // namespace
}  // namespace quintet
