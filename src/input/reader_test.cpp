#include "input/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>  // mkstemp
#include <unistd.h>
#include <zlib.h>

#include <fstream>

#include "core/error.h"
#include "input/formats.h"

namespace quintet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::vector<Record> read_all(const std::string& bytes, InputFormat format,
                             const std::string& name = "x") {
  const auto reader = make_reader(from_memory(bytes), name, format);
  std::vector<Record> records;
  for (Record record; reader->next(record);) records.push_back(record);
  return records;
}

std::vector<Record> fasta(const std::string& bytes) {
  return read_all(bytes, InputFormat::kFasta, "p.fasta");
}

std::string problem_of(const std::function<void()>& call, ErrorKind kind = ErrorKind::kFile) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  return "nothing was thrown";
}

std::string gzip_of(const std::string& bytes) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, bytes.size()) + 32, '\0');
  std::string copy = bytes;
  stream.next_in = reinterpret_cast<Bytef*>(copy.data());
  stream.avail_in = static_cast<uInt>(copy.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

TEST(Fasta, IdIsTheFirstWordAndLinesAreJoined) {
  const auto records = fasta(">sp|P1|X some words\nMKV\nLA\n\n>b\nMK");
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].id, "sp|P1|X");
  EXPECT_EQ(records[0].text, "MKVLA");
  EXPECT_EQ(records[0].line, 1U);
  EXPECT_EQ(records[1].id, "b");
  EXPECT_EQ(records[1].text, "MK");
  EXPECT_EQ(records[1].ordinal, 1U);
  EXPECT_EQ(records[1].line, 5U);
}

TEST(Fasta, LineEndsAndBlanksDoNotMatter) {
  const auto plain = fasta(">a x\nM K-U\nZOBJ\n");
  EXPECT_EQ(plain[0].text, "MK-UZOBJ");
  for (const std::string odd :
       {">a x\r\nM K-U\r\nZOBJ\r\n", "\xEF\xBB\xBF>a x\nM\tK-U \nZOBJ", ">a x\rM K-U\rZOBJ\r",
        "\n\n>a\tx\nMK-\n\nU\nZOBJ\n\n", ";remark\n> a x\nMK-U\n;remark\nZOBJ\n"}) {
    const auto records = fasta(odd);
    ASSERT_EQ(records.size(), 1U) << odd;
    EXPECT_EQ(records[0].id, "a");
    EXPECT_EQ(records[0].text, plain[0].text);
  }
}

TEST(Fasta, CaseStopsAndGapsStayAsTheyAre) {
  EXPECT_EQ(fasta(">x\nmkvU\n")[0].text, "mkvU");
  EXPECT_EQ(fasta(">x\nMKV*\n")[0].text, "MKV*");
  EXPECT_EQ(fasta(">x\nM-.K\n")[0].text, "M-.K");
}

TEST(Fasta, EmptyRecordsAreRejectedOneByOne) {
  const auto records = fasta(">a\n>b\nMK\n>\nMK\n>");
  ASSERT_EQ(records.size(), 4U);
  EXPECT_EQ(records[0].rejected, "no residues");
  EXPECT_TRUE(records[0].empty);
  EXPECT_EQ(records[1].rejected, "");
  EXPECT_EQ(records[1].text, "MK");
  EXPECT_EQ(records[2].rejected, "the header has no id");
  EXPECT_NE(records[3].rejected, "");
  EXPECT_EQ(fasta(">").size(), 1U);
  EXPECT_NE(fasta(">")[0].rejected, "");
}

TEST(Fasta, NoHeaderIsAnErrorWithTheLine) {
  EXPECT_THAT(problem_of([] { fasta("\nMKV\n"); }),
              testing::AllOf(HasSubstr("p.fasta:2:"), HasSubstr("'MKV'"), HasSubstr("'>'")));
  EXPECT_TRUE(fasta("").empty());
  EXPECT_TRUE(fasta("\n\n").empty());
}

TEST(Fasta, OddBytes) {
  EXPECT_EQ(fasta(">a\xFFz\nMK\n")[0].id, "a\xEF\xBF\xBDz");
  EXPECT_THAT(fasta(std::string(">a\nM\0K\n", 7))[0].rejected, HasSubstr("NUL"));
  EXPECT_THAT(problem_of([] { fasta(std::string("\xFF\xFE>\0a\0", 6)); }), HasSubstr("UTF-16"));
}

// Sizes around the buffer, and lines much longer than it.
TEST(Fasta, LongLines) {
  for (const size_t length : {(1U << 20) - 5, (1U << 20) - 4, (1U << 20) - 3, 1U << 20, 9U << 20}) {
    const std::string residues(length, 'M');
    for (const std::string end : {"\n", "\r\n", "\r"}) {
      const auto records = fasta(">a" + end + residues + end + "K" + end + ">b" + end + "A" + end);
      ASSERT_EQ(records.size(), 2U);
      EXPECT_EQ(records[0].text.size(), length + 1);
      EXPECT_EQ(records[1].text, "A");
    }
  }
}

TEST(Fasta, ALineOfAHundredMegabytesIsReadInLinearTime) {
  std::string bytes = ">a\n";
  bytes.append(size_t{100} << 20, 'M');
  const auto records = fasta(bytes);
  EXPECT_EQ(records[0].text.size(), size_t{100} << 20);
}

TEST(Text, EveryLineIsARecord) {
  const auto records = read_all("Hi  there\r\n\n x\ry \nlast", InputFormat::kText);
  ASSERT_EQ(records.size(), 4U);
  EXPECT_EQ(records[0].text, "Hi  there");
  EXPECT_EQ(records[0].id, "1");
  EXPECT_EQ(records[1].text, "");
  EXPECT_EQ(records[1].rejected, "");
  EXPECT_EQ(records[2].text, " x\ry ");
  EXPECT_EQ(records[3].id, "4");
  EXPECT_EQ(read_all("a\n", InputFormat::kText).size(), 1U);
  EXPECT_EQ(read_all("\n", InputFormat::kText).size(), 1U);
  EXPECT_TRUE(read_all("", InputFormat::kText).empty());
}

TEST(Jsonl, TextAndIds) {
  const auto records = read_all(
      "{\"id\": \"a\", \"text\": \"\", \"other\": [1]}\n\n"
      "{\"id\": 7, \"input_ids\": [5, 6, 1], \"attention_mask\": [0, 1, true]}\r\n"
      "{\"text\": \"\\u00e9\"}",
      InputFormat::kJsonl);
  ASSERT_EQ(records.size(), 3U);
  EXPECT_EQ(records[0].id, "a");
  EXPECT_EQ(records[0].rejected, "");
  EXPECT_FALSE(records[0].has_ids);
  EXPECT_EQ(records[1].id, "7");
  EXPECT_TRUE(records[1].has_ids);
  EXPECT_THAT(records[1].input_ids, ElementsAre(5, 6, 1));
  EXPECT_THAT(records[1].attention_mask, ElementsAre(0, 1, 1));
  EXPECT_EQ(records[1].ordinal, 1U);
  EXPECT_EQ(records[2].id, "4");  // its line
  EXPECT_EQ(records[2].text, "é");
}

TEST(Jsonl, ABrokenLineIsARejectedRecord) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"({"id": "a", "text": )", "not valid JSON"},
      {R"([1])", "expected an object"},
      {R"({"id": "a"})", "neither 'text' nor 'input_ids'"},
      {R"({"id": "a", "text": "x", "input_ids": [1]})", "both"},
      {R"({"id": "a", "text": 5})", "'text' is number"},
      {R"({"id": [1], "text": "x"})", "'id' is array"},
      {R"({"id": "", "text": "x"})", "'id' is empty"},
      {R"({"id": "\u0000", "text": "x"})", "NUL"},
      {R"({"id": "a", "id": "b", "text": "x"})", "'id' stands twice"},
      {R"({"id": "a", "input_ids": []})", "empty"},
      {R"({"id": "a", "input_ids": [1, 1.5]})", "holds 1.5 at position 1"},
      {R"({"id": "a", "input_ids": [9223372036854775808]})", "holds 9223372036854775808"},
      {R"({"id": "a", "input_ids": "5"})", "expected a list"},
      {R"({"id": "a", "input_ids": [1, 2], "attention_mask": [1]})", "1 entries for 2 input_ids"},
      {R"({"id": "a", "input_ids": [1, 2], "attention_mask": [1, 2]})", "expected 0 or 1"},
      {"{\"id\": \"\xFF\", \"text\": \"x\"}", "not valid JSON"},
      {std::string(100000, '['), "deeper"},
  };
  for (const auto& [line, reason] : cases) {
    const auto records =
        read_all(line + "\n{\"id\": \"next\", \"text\": \"x\"}\n", InputFormat::kJsonl);
    ASSERT_EQ(records.size(), 2U) << line.substr(0, 80);
    EXPECT_THAT(records[0].rejected, HasSubstr(reason));
    EXPECT_THAT(records[0].rejected, Not(HasSubstr("line ")));  // it has a field of its own
    EXPECT_FALSE(records[0].id.empty());
    EXPECT_EQ(records[1].id, "next");
    EXPECT_EQ(records[1].rejected, "");
  }
}

std::vector<Record> with_targets(const std::string& bytes,
                                 RecordFields fields = RecordFields::kSourceAndTarget) {
  const auto reader = make_reader(from_memory(bytes), "x", InputFormat::kJsonl, fields);
  std::vector<Record> records;
  for (Record record; reader->next(record);) records.push_back(record);
  return records;
}

TEST(Jsonl, Targets) {
  const auto records = with_targets(
      R"({"text": "a", "decoder_input_ids": [0, 5], "labels": [7, -100, 0], "target": null})"
      "\n"
      R"({"input_ids": [3, 4], "position_ids": [1, 0], "target": "é", "labels": null, "x": 1})"
      "\n"
      R"({"text": "a", "target": ""})");
  ASSERT_EQ(records.size(), 3U);
  EXPECT_EQ(records[0].rejected, "");
  EXPECT_THAT(records[0].decoder_input_ids, ElementsAre(0, 5));
  EXPECT_THAT(records[0].labels, ElementsAre(7, kIgnoredLabel, 0));
  EXPECT_FALSE(records[0].target.has_value());
  EXPECT_TRUE(records[0].position_ids.empty());
  EXPECT_EQ(records[1].rejected, "");
  EXPECT_THAT(records[1].position_ids, ElementsAre(1, 0));
  EXPECT_EQ(records[1].target, "é");
  EXPECT_TRUE(records[1].labels.empty());
  EXPECT_EQ(records[2].target, "");
}

TEST(Jsonl, BrokenTargetsAreRejectedWhereTheyAreRead) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"({"text": "x", "labels": []})", "'labels' is empty"},
      {R"({"text": "x", "labels": 5})", "'labels' is number, expected a list"},
      {R"({"text": "x", "labels": [1, -1]})",
       "'labels' holds -1 at position 1, expected token ids"},
      {R"({"text": "x", "labels": [1.5]})", "'labels' holds 1.5 at position 0"},
      {R"({"text": "x", "labels": [9223372036854775808]})", "holds 9223372036854775808"},
      {R"({"text": "x", "labels": [1], "target": "y"})", "both 'labels' and 'target'"},
      {R"({"text": "x", "target": ["y"]})", "'target' is array, expected a string"},
      {R"({"text": "x", "decoder_input_ids": []})", "'decoder_input_ids' is empty"},
      {R"({"text": "x", "decoder_input_ids": [true]})", "holds true at position 0"},
      {R"({"text": "x", "decoder_input_ids": {"a": 1}})", "is object, expected a list"},
      {R"({"text": "x", "position_ids": [0]})", "'position_ids' needs 'input_ids'"},
      {R"({"input_ids": [1], "position_ids": [0, 1]})", "2 entries for 1 input_ids"},
      {R"({"input_ids": [1], "position_ids": [-1]})", "holds -1 at position 0"},
      {R"({"text": "x", "input_ids": [1], "target": "y"})", "both 'text' and 'input_ids'"},
  };
  for (const auto& [line, reason] : cases) {
    const auto records = with_targets(line);
    ASSERT_EQ(records.size(), 1U) << line;
    EXPECT_THAT(records[0].rejected, HasSubstr(reason));
    const auto ignored = with_targets(line, RecordFields::kSource);
    EXPECT_EQ(ignored[0].rejected.empty(), reason.find("'text'") == std::string::npos) << line;
    EXPECT_TRUE(ignored[0].labels.empty());
  }
}

TEST(Gzip, ByContentInSeveralMembers) {
  const std::string packed = gzip_of(">a\nMK") + gzip_of("") + gzip_of("V\n>b\nA\n");
  for (const std::string& padding : {std::string(), std::string(300, '\0')}) {
    const auto records = read_all(packed + padding, InputFormat::kAuto, "x.fasta");
    ASSERT_EQ(records.size(), 2U);
    EXPECT_EQ(records[0].text, "MKV");
    EXPECT_EQ(records[1].text, "A");
  }
  std::string bytes = ">a\n";
  for (int i = 0; i < 3000000; ++i) bytes += static_cast<char>('A' + i % 7);
  EXPECT_EQ(fasta(gzip_of(bytes))[0].text, bytes.substr(3));
}

TEST(Gzip, CutOrBrokenAnywhereIsAnErrorWithThePosition) {
  const std::string packed = gzip_of(">a\nMKVLLA\n>b\nAAAAAAAAAA\n");
  for (size_t cut = 2; cut < packed.size(); ++cut) {
    EXPECT_THAT(problem_of([&] { fasta(packed.substr(0, cut)); }),
                HasSubstr(fmt::format("ends at byte {}", cut)));
  }
  std::string broken = packed;
  broken[broken.size() - 6] ^= 1;  // in the checksum
  EXPECT_THAT(problem_of([&] { fasta(broken); }), HasSubstr("broken gzip at byte"));
  EXPECT_THAT(problem_of([&] { fasta(packed + "x"); }), HasSubstr("neither gzip nor padding"));
}

TEST(Reader, FormatByExtensionThenByFirstByte) {
  const auto format = [](const std::string& name, const std::string& bytes) {
    return make_reader(from_memory(bytes), name, InputFormat::kAuto)->format();
  };
  EXPECT_EQ(format("x.fasta.gz", ""), InputFormat::kFasta);
  EXPECT_EQ(format("x.faa", "{"), InputFormat::kFasta);
  EXPECT_EQ(format("X.FASTA.GZ", "{"), InputFormat::kFasta);
  EXPECT_EQ(format("X.Txt", "{"), InputFormat::kText);
  EXPECT_EQ(format("x.txt", ">a"), InputFormat::kText);
  EXPECT_EQ(format("x.jsonl", ""), InputFormat::kJsonl);
  EXPECT_EQ(format("stdin", "\n >a\nMK"), InputFormat::kFasta);
  EXPECT_EQ(format("stdin", " {\"text\": 1}"), InputFormat::kJsonl);
  EXPECT_EQ(format("stdin", "MK"), InputFormat::kText);
  EXPECT_EQ(format("stdin", ""), InputFormat::kText);
  EXPECT_EQ(format("stdin", gzip_of(">a\nMK\n")), InputFormat::kFasta);
  EXPECT_EQ(input_format_from_name("fasta"), InputFormat::kFasta);
  EXPECT_THAT(problem_of([] { input_format_from_name("fastq"); }, ErrorKind::kUsage),
              HasSubstr("expected auto, fasta"));
}

TEST(Reader, FilesProgressAndErrors) {
  std::string name = testing::TempDir() + "quintet-XXXXXX";
  ::close(::mkstemp(name.data()));
  std::ofstream(name) << ">a\nMK\n";
  const auto reader = open_reader(name, InputFormat::kAuto);
  EXPECT_EQ(reader->bytes_total(), 6U);
  Record record;
  EXPECT_TRUE(reader->next(record));
  EXPECT_FALSE(reader->next(record));
  EXPECT_FALSE(reader->next(record));
  EXPECT_EQ(reader->bytes_read(), 6U);
  ::unlink(name.c_str());
  EXPECT_THAT(problem_of([&] { open_reader(name, InputFormat::kAuto); }, ErrorKind::kIo),
              HasSubstr("cannot open"));
  EXPECT_THAT(problem_of([] { open_reader("/", InputFormat::kAuto); }, ErrorKind::kIo),
              HasSubstr("folder"));
}

}  // namespace
}  // namespace quintet
