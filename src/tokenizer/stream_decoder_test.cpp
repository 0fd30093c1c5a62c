// Decoding against what transformers 5.24 gives for the same folders and ids.
#include "tokenizer/stream_decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "tokenizer/testing.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/tokenizer_json.h"

namespace quintet {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> stream(const Tokenizer& tokenizer, const std::vector<int32_t>& ids,
                                const DecodeOptions& options = {}) {
  StreamDecoder decoder = tokenizer.stream_decoder(options);
  std::vector<std::string> parts;
  for (const int32_t id : ids) parts.push_back(decoder.push(id));
  parts.push_back(decoder.flush());
  return parts;
}

class DecodedByReference : public ::testing::TestWithParam<const char*> {};

TEST_P(DecodedByReference, TextsAreEqualWholeAndInParts) {
  const auto tokenizer = load_tokenizer(testing::fixture(GetParam()));
  for (const json& entry : parse_json_file(testing::fixture(GetParam()) / "decoded.json")) {
    const auto ids = entry["ids"].get<std::vector<int32_t>>();
    const DecodeOptions options{.skip_special_tokens = entry["skip"].get<bool>(),
                                .clean_up_tokenization_spaces = entry["clean"].get<bool>()};
    EXPECT_EQ(tokenizer->decode(ids, options), entry["text"].get<std::string>()) << entry;
    std::string joined;
    for (const std::string& part : stream(*tokenizer, ids, options)) {
      EXPECT_TRUE(is_valid_utf8(part)) << entry;
      joined += part;
    }
    EXPECT_EQ(joined, entry["text"].get<std::string>()) << entry;
  }
}

INSTANTIATE_TEST_SUITE_P(Folders, DecodedByReference,
                         ::testing::Values("spiece_only", "byte_fallback", "byt5", "ankh_like",
                                           "prostt5_like", "gpt2_files", "gpt2_prefix_space"),
                         [](const auto& info) { return std::string(info.param); });

TEST(StreamDecoder, HoldsBackWhatIsNoWholeCharacter) {
  const auto byt5 = load_tokenizer(testing::fixture("byt5"));
  EXPECT_THAT(stream(*byt5, {0x61 + 3, 0xC3 + 3, 0xA9 + 3, 0xE2 + 3}),
              ElementsAre("a", "", "é", "", ""));
  const auto gpt2 = load_tokenizer(testing::fixture("gpt2_files"));
  const auto id = [&](const char* piece) { return *gpt2->find(piece); };
  EXPECT_THAT(stream(*gpt2, {id("\u00C3"), id("\u00A9"), id("\u00C3"), id("a"), id("\u00C3")}),
              ElementsAre("", "é", "", "\uFFFDa", "", "\uFFFD"));
}

TEST(StreamDecoder, HoldsBackSpacesThatMayGo) {
  const auto t5 = load_tokenizer(testing::fixture("spiece_only"));
  const auto id = [&](const char* piece) { return *t5->find(piece); };
  const std::vector<int32_t> ids = {id("\u2581a"), id("\u2581"), id("."), id("\u2581")};
  EXPECT_THAT(stream(*t5, ids), ElementsAre("a", " ", ".", " ", ""));
  EXPECT_THAT(stream(*t5, ids, {.clean_up_tokenization_spaces = true}),
              ElementsAre("a", "", ".", "", " "));
}

TEST(Decode, SpecialTokensAreThoseThatTheFilesCallSo) {
  json spec = testing::small_tokenizer_json();
  spec["added_tokens"].push_back({{"content", "<x>"}, {"special", false}});
  spec["decoder"] = {{"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", "always"}};
  const auto tokenizer = parse_tokenizer_json(spec.dump(), "t.json");
  const std::vector<int32_t> ids = {0, 7, 3, 9, 1};
  EXPECT_EQ(tokenizer->decode(ids), "<pad> a <x></s>");
  EXPECT_EQ(tokenizer->decode(ids, {.skip_special_tokens = true}), "a <x>");
  EXPECT_TRUE(tokenizer->is_special(0));
  EXPECT_FALSE(tokenizer->is_special(9));
  EXPECT_FALSE(tokenizer->is_special(7));
  EXPECT_FALSE(tokenizer->is_special(-1));
  spec["decoder"]["prepend_scheme"] = "never";
  EXPECT_EQ(parse_tokenizer_json(spec.dump(), "t.json")->decode(std::vector{7, 7}), " a a");
  spec["decoder"] = nullptr;
  EXPECT_EQ(parse_tokenizer_json(spec.dump(), "t.json")->decode(std::vector{7, 4}), "▁a a");
}

TEST(Decode, CleansUpWhereTheFolderSaysSo) {
  json spec = testing::small_tokenizer_json();
  spec["model"]["vocab"].push_back({"▁.", -1});
  spec["decoder"] = {{"type", "Metaspace"}, {"replacement", "▁"}};
  const std::vector<int32_t> ids = {7, 9};
  const auto decode = [&](CleanUp clean_up, std::optional<bool> asked) {
    return parse_tokenizer_json(spec.dump(), "t.json", clean_up)
        ->decode(ids, {.clean_up_tokenization_spaces = asked});
  };
  EXPECT_EQ(decode({}, std::nullopt), "a .");
  EXPECT_EQ(decode({.by_default = true}, std::nullopt), "a.");
  EXPECT_EQ(decode({.by_default = true}, false), "a .");
  EXPECT_EQ(decode({}, true), "a.");
  // BPE: never by the caller's wish alone.
  EXPECT_EQ(CleanUp{.by_default = true}.applies_to(true), std::nullopt);
  EXPECT_EQ((CleanUp{.by_default = true, .of_bpe = true}.applies_to(true)), true);
}

TEST(Decode, ADecoderThatIsNotKnownIsAnErrorOfDecodingOnly) {
  json spec = testing::small_tokenizer_json();
  spec["decoder"] = {{"type", "WordPiece"}};
  const auto tokenizer = parse_tokenizer_json(spec.dump(), "t.json");
  EXPECT_THAT(tokenizer->encode("ab", true), ElementsAre(7, 5, 1));
  try {
    tokenizer->decode(std::vector{7});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kFile);
    EXPECT_THAT(error.what(), HasSubstr("t.json: decoder: 'WordPiece' is not supported"));
  }
}

}  // namespace
}  // namespace quintet
