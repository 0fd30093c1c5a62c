#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <bit>
#include <chrono>
#include <fstream>

#include "core/error.h"
#include "core/sanitized.h"
#include "tokenizer/spiece.h"
#include "tokenizer/testing.h"
#include "tokenizer/tokenizer.h"

namespace quintet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Expected ids are those of transformers 5.24 and tokenizers 0.23.3 on the same files.
class Reference : public ::testing::TestWithParam<const char*> {};

TEST_P(Reference, IdsAreEqual) {
  const auto tokenizer = load_tokenizer(testing::fixture(GetParam()));
  const auto cases = parse_json_file(testing::fixture(GetParam()) / "cases.json");
  for (const auto& entry : cases) {
    const auto text = entry["text"].get<std::string>();
    EXPECT_EQ(tokenizer->encode(text, true), entry["ids"].get<std::vector<int32_t>>()) << text;
  }
}

TEST_P(Reference, TokensAreTheIdsWithGrowingOffsets) {
  const auto tokenizer = load_tokenizer(testing::fixture(GetParam()));
  for (const auto& entry : parse_json_file(testing::fixture(GetParam()) / "cases.json")) {
    const auto text = entry["text"].get<std::string>();
    std::vector<int32_t> ids;
    uint32_t begin = 0;
    for (const Token& token : tokenizer->encode_tokens(text, true)) {
      ids.push_back(token.id);
      EXPECT_EQ(token.piece, tokenizer->piece(token.id));
      EXPECT_EQ(tokenizer->find(token.piece), token.id);
      EXPECT_LE(begin, token.begin) << text;
      EXPECT_LE(token.begin, token.end) << text;
      EXPECT_LE(token.end, text.size()) << text;
      begin = token.begin;
    }
    EXPECT_EQ(ids, tokenizer->encode(text, true));
  }
}

INSTANTIATE_TEST_SUITE_P(Folders, Reference,
                         ::testing::Values("spiece_only", "byte_fallback", "byt5", "ankh_like",
                                           "prostt5_like", "gpt2_files", "gpt2_prefix_space"),
                         [](const auto& info) { return std::string(info.param); });

TEST(LoadTokenizer, KnowsItsVocabulary) {
  const auto t5 = load_tokenizer(testing::fixture("spiece_only"));
  EXPECT_EQ(t5->vocab_size(), 500);
  EXPECT_EQ(t5->unk_id(), 2);
  EXPECT_EQ(t5->eos_id(), 1);
  EXPECT_EQ(t5->find("<extra_id_0>"), 499);
  EXPECT_EQ(t5->piece(499), "<extra_id_0>");
  EXPECT_EQ(t5->piece(500), "");
  EXPECT_EQ(t5->piece(-1), "");
  const auto byt5 = load_tokenizer(testing::fixture("byt5"));
  EXPECT_EQ(byt5->vocab_size(), 384);
  EXPECT_EQ(byt5->find("<extra_id_0>"), 259);
}

TEST(LoadTokenizer, WhiteSpaceIsSqueezedAndUnknownCharactersAreUnk) {
  const auto t5 = load_tokenizer(testing::fixture("spiece_only"));
  const auto expected = t5->encode("Hi there", true);
  EXPECT_EQ(t5->encode("Hi  there\n", true), expected);
  EXPECT_EQ(t5->encode("Hi\tthere", true), expected);
  EXPECT_THAT(t5->encode("{", false), ElementsAre(*t5->find("\u2581"), 2));
  const auto byt5 = load_tokenizer(testing::fixture("byt5"));
  EXPECT_THAT(byt5->encode("a  b\n", false), ElementsAre(100, 35, 35, 101, 13));
}

TEST(LoadTokenizer, OffsetsAreBytesOfTheOriginalText) {
  const auto t5 = load_tokenizer(testing::fixture("spiece_only"));
  // U+FB01 is one character of 3 bytes that the map makes "fi".
  const std::string text = " \uFB01 <extra_id_0>x";
  for (const Token& token : t5->encode_tokens(text, true)) {
    const std::string source = text.substr(token.begin, token.end - token.begin);
    if (token.piece == "<extra_id_0>") {
      EXPECT_EQ(source, "<extra_id_0>");
    }
    if (token.piece == "x") {
      EXPECT_EQ(source, "x");
    }
    if (token.piece == "i") {
      EXPECT_EQ(source, "\uFB01");
    }
    if (token.piece == "</s>") {
      EXPECT_EQ(token.begin, text.size());
    }
  }
}

TEST(LoadTokenizer, InvalidUtf8IsReadAsReplacementCharacters) {
  const auto t5 = load_tokenizer(testing::fixture("byte_fallback"));
  const std::string replacement = "a\uFFFDb";
  for (const char* broken : {"a\x80"
                             "b",
                             "a\xE2\x96"
                             "b",
                             "a\xF0\x9F\x98"
                             "b",
                             "a\xC3"
                             "b"}) {
    EXPECT_EQ(t5->encode(broken, true), t5->encode(replacement, true));
  }
  EXPECT_EQ(t5->encode("a\xED\xA0\x80"
                       "b",
                       true),
            t5->encode("a\uFFFD\uFFFD\uFFFDb", true));
}

TEST(LoadTokenizer, LongTextsTakeLinearTime) {
  const auto t5 = load_tokenizer(testing::fixture("byte_fallback"));
  const auto seconds = [&](const std::string& text) {
    const auto start = std::chrono::steady_clock::now();
    EXPECT_GT(t5->encode(text, true).size(), text.size() / 100);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  std::string marks = "e";  // one grapheme cluster
  while (marks.size() < 4'000'000) marks += "\u0301";
  EXPECT_LT(seconds(std::string(4'000'000, 'a')), 30);
  EXPECT_LT(seconds(std::string(2'000'000, ' ') + std::string(2'000'000, 'a')), 30);
  EXPECT_LT(seconds(marks), 30);
}

// How much more memory than before a call takes at its peak, per byte of the text.
double bytes_per_byte(const Tokenizer& tokenizer, const std::string& text, bool with_offsets) {
  const auto status = [](const std::string& key) {
    std::ifstream file("/proc/self/status");
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with(key)) return std::stod(line.substr(key.size())) * 1024;
    }
    return 0.0;
  };
  ::malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << "5";  // the peak starts anew from here
  const double before = status("VmRSS:");
  with_offsets ? static_cast<void>(tokenizer.encode_tokens(text, true))
               : static_cast<void>(tokenizer.encode(text, true));
  return (status("VmHWM:") - before) / static_cast<double>(text.size());
}

TEST(LoadTokenizer, LongTextsTakeLittleMemory) {
  if (kSanitized) GTEST_SKIP() << "the sanitizer has memory of its own";
  constexpr size_t kSize = 2'000'000;
  const auto repeat = [](std::string_view unit) {
    std::string text;
    while (text.size() < kSize) text += unit;
    return text;
  };
  for (const char* folder : {"spiece_only", "byte_fallback", "byt5"}) {
    const auto tokenizer = load_tokenizer(testing::fixture(folder));
    for (const std::string& text :
         {std::string(kSize, '\0'), std::string(kSize, ' '), std::string(kSize, 'a'), repeat("a "),
          repeat("The quick brown fox. "), repeat("\uFB01"), repeat("\uFFFD"), repeat("</s>")}) {
      EXPECT_LT(bytes_per_byte(*tokenizer, text, false), 20) << folder << ' ' << text.substr(0, 9);
      EXPECT_LT(bytes_per_byte(*tokenizer, text, true), 100) << folder << ' ' << text.substr(0, 9);
    }
  }
}

TEST(LoadTokenizer, AHugeBpeWordTakesBoundedMemory) {
  if (kSanitized) GTEST_SKIP() << "the sanitizer has memory of its own";
  const auto tokenizer = load_tokenizer(testing::fixture("gpt2_files"));
  std::string words;
  while (words.size() < 2'000'000) words += "the ";
  EXPECT_LT(bytes_per_byte(*tokenizer, words, false), 20);
  EXPECT_LT(bytes_per_byte(*tokenizer, words, true), 100);
  for (const std::string& word : {std::string(2'000'000, 'a'), std::string(2'000'000, '\0')}) {
    EXPECT_LT(bytes_per_byte(*tokenizer, word, false), 50);
    EXPECT_LT(bytes_per_byte(*tokenizer, word, true), 130);
  }
}

// ---- folders written by the tests

class Folder {
 public:
  Folder() {
    path_ = std::filesystem::path(::testing::TempDir()) /
            ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  void write(const std::string& name, const std::string& contents) const {
    std::ofstream(path_ / name, std::ios::binary) << contents;
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

std::string bytes_field(int number, const std::string& bytes) {
  std::string out(1, static_cast<char>(number << 3 | 2));
  for (size_t n = bytes.size(); true; n >>= 7) {
    out += static_cast<char>((n & 0x7F) | (n >= 0x80 ? 0x80 : 0));
    if (n < 0x80) return out + bytes;
  }
}

std::string piece(const std::string& text, float score, char kind = 1) {
  const auto bits = std::bit_cast<std::array<char, 4>>(score);
  return bytes_field(
      1, bytes_field(1, text) + '\x15' + std::string(bits.begin(), bits.end()) + '\x18' + kind);
}

std::string hello_model() {
  return piece("<pad>", 0, 3) + piece("</s>", 0, 3) + piece("<unk>", 0, 2) + piece("\u2581", -2) +
         piece(".", -3) + piece("\u2581Hello", -4);
}

TEST(LoadTokenizer, LegacyDecidesWhetherAWordBehindAnAddedTokenIsMarked) {
  const Folder folder;
  folder.write("spiece.model", hello_model());
  const int32_t sentinel = 6 + 99;
  for (const char* config : {"{}", R"({"legacy": true})"}) {
    folder.write("tokenizer_config.json", config);
    EXPECT_THAT(load_tokenizer(folder.path())->encode("<extra_id_0>. Hello", true),
                ElementsAre(sentinel, 3, 4, 5, 1));
  }
  folder.write("tokenizer_config.json", R"({"legacy": false})");
  const auto tokenizer = load_tokenizer(folder.path());
  EXPECT_THAT(tokenizer->encode("<extra_id_0>. Hello", true), ElementsAre(sentinel, 4, 5, 1));
  EXPECT_THAT(tokenizer->encode("Hello.  Hello ", true), ElementsAre(5, 4, 5, 1));
  folder.write("tokenizer.json", testing::small_tokenizer_json().dump());
  EXPECT_THAT(load_tokenizer(folder.path())->encode("ab", true), ElementsAre(7, 5, 1));
}

TEST(LoadTokenizer, ExtraIdsAndAddedTokensFollowThePieces) {
  const Folder folder;
  folder.write("spiece.model", hello_model());
  folder.write("tokenizer_config.json", R"({"extra_ids": 2})");
  folder.write("added_tokens.json", R"({"<b>": 9, "<a>": 8})");
  const auto tokenizer = load_tokenizer(folder.path());
  EXPECT_THAT(tokenizer->encode("<b><extra_id_1><a><extra_id_0>", true),
              ElementsAre(9, 6, 8, 7, 1));
  EXPECT_EQ(tokenizer->vocab_size(), 10);
  folder.write("tokenizer_config.json", R"({"extra_ids": -1})");
  EXPECT_THROW(load_tokenizer(folder.path()), Error);
}

TEST(LoadTokenizer, ASpieceCutOrAlteredAnywhereIsAnErrorOrATokenizer) {
  const std::string model = hello_model();
  for (size_t size = 0; size < model.size(); ++size) {
    try {
      parse_spiece(std::string_view(model).substr(0, size), "spiece.model");
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kFile);
    }
  }
  for (size_t at = 0; at < model.size(); ++at) {
    for (const char byte : {'\0', '\x7F', '\xFF'}) {
      std::string altered = model;
      altered[at] = byte;
      try {
        parse_spiece(altered, "spiece.model");
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kFile);
      }
    }
  }
  EXPECT_THROW(parse_spiece(hello_model() + bytes_field(2, "\x18\x02"), "spiece.model"), Error);
}

std::string gpt2_vocab() { return R"({"a": 0, "b": 1, "ab": 2, "\u0120": 3, "<|endoftext|>": 4})"; }

TEST(LoadTokenizer, VocabAndMergesWithWhatTheFolderSays) {
  const Folder folder;
  folder.write("vocab.json", gpt2_vocab());
  folder.write("merges.txt", "#version: 0.2\na b\n");
  EXPECT_THAT(load_tokenizer(folder.path())->encode("ab a<|endoftext|>", true),
              ElementsAre(2, 3, 0, 4));
  folder.write("tokenizer_config.json",
               R"({"tokenizer_class": "GPT2Tokenizer", "add_bos_token": true, "pad_token": "<pad>",
                   "add_prefix_space": true})");
  const auto tokenizer = load_tokenizer(folder.path());
  EXPECT_THAT(tokenizer->encode("ab", true), ElementsAre(4, 3, 2));
  EXPECT_THAT(tokenizer->encode("ab", false), ElementsAre(3, 2));
  EXPECT_EQ(tokenizer->find("<pad>"), 5);
  EXPECT_EQ(tokenizer->vocab_size(), 6);
  folder.write("special_tokens_map.json", R"({"eos_token": "</s>"})");
  folder.write("added_tokens.json", R"({"<b>": 9})");  // the number does not count
  folder.write("tokenizer_config.json", R"({"add_eos_token": true})");
  EXPECT_THAT(load_tokenizer(folder.path())->encode("a<b>", true), ElementsAre(0, 5, 6));
}

TEST(LoadTokenizer, VocabAndMergesOfOtherClassesAreRefused) {
  const Folder folder;
  folder.write("vocab.json", gpt2_vocab());
  folder.write("merges.txt", "a b\n");
  folder.write("tokenizer_config.json", R"({"tokenizer_class": "RobertaTokenizer"})");
  try {
    load_tokenizer(folder.path());
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kFile);
    EXPECT_THAT(error.what(), HasSubstr("a RobertaTokenizer"));
  }
}

TEST(LoadTokenizer, AFolderWithoutTokenizerFilesSaysWhatIsMissing) {
  const Folder folder;
  try {
    load_tokenizer(folder.path());
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kFile);
    EXPECT_THAT(error.what(), HasSubstr("no tokenizer.json, no spiece.model"));
  }
}

}  // namespace
}  // namespace quintet
