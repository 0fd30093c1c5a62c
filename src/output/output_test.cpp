#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "output/file.h"
#include "output/finalise.h"
#include "output/test_folder.h"
#include "output/writer.h"

namespace quintet {
namespace {

using testing::HasSubstr;

constexpr int64_t kWidth = 3;

OutputOptions options_for(const std::filesystem::path& path, bool pooled = true) {
  OutputOptions options;
  options.path = path;
  options.format = output_format_of(path);
  options.pooled = pooled;
  options.d_model = kWidth;
  options.fingerprint = R"({"model": "tiny", "input": "a.fasta"})";
  return options;
}

Embedding record(uint64_t ordinal, int64_t n_rows = 1) {
  Embedding embedding;
  embedding.ordinal = ordinal;
  embedding.line = 2 * ordinal + 1;
  embedding.id = "r" + std::to_string(ordinal);
  embedding.sequence = std::string(static_cast<size_t>(n_rows), 'M') + std::to_string(ordinal);
  embedding.n_rows = n_rows;
  for (int64_t i = 0; i < n_rows * kWidth; ++i) {
    embedding.values.push_back(static_cast<float>(ordinal) + 0.1F * static_cast<float>(i));
  }
  return embedding;
}

template <typename Call>
std::string problem_of(ErrorKind kind, const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

// Ten records, the third rejected, the eighth with the sequence of the first.
void write_record(Output& output, uint64_t ordinal) {
  if (ordinal == 2) {
    output.reject({.ordinal = 2, .line = 5, .id = "r2", .reason = "no residues"});
  } else if (ordinal == 7) {
    Embedding same = record(7);
    same.sequence = record(0).sequence;
    output.append_same(same, 0);
  } else {
    output.append(record(ordinal));
  }
}

std::string whole_run(const std::filesystem::path& path) {
  auto output = open_output(options_for(path), Existing::kRefuse);
  for (uint64_t i = 0; i < 10; ++i) write_record(*output, i);
  const OutputCounts counts = output->finish();
  EXPECT_EQ(counts.embedded, 9U);
  EXPECT_EQ(counts.rejected, 1U);
  return read_file(path);
}

TEST(Output, WritesFileAndRejectsAndLeavesNoSpool) {
  const TestFolder folder;
  const auto path = folder / "x.jsonl";
  const std::string text = whole_run(path);
  EXPECT_THAT(text, HasSubstr(R"({"id": "r0", "embedding": [0, 0.1, 0.2]})"));
  EXPECT_THAT(text, HasSubstr(R"({"id": "r7", "embedding": [0, 0.1, 0.2]})"));
  EXPECT_EQ(read_file(folder / "x.jsonl.rejects.jsonl"),
            "{\"id\":\"r2\",\"line\":5,\"reason\":\"no residues\"}\n");
  EXPECT_EQ(folder.names(),
            (std::vector<std::string>{"x.jsonl", "x.jsonl.rejects.jsonl", "x.jsonl.run.json"}));
}

// A run that ends after each number of records and is resumed gives the same bytes.
TEST(Output, ResumesAfterEveryRecord) {
  for (const std::string name : {"x.h5", "x.npy", "x.safetensors", "x.jsonl"}) {
    const TestFolder folder;
    const std::string expected = whole_run(folder / name);
    for (uint64_t stop = 0; stop <= 10; ++stop) {
      const auto path = folder / ("part" + std::to_string(stop) + name);
      {
        auto output = open_output(options_for(path), Existing::kResume);
        for (uint64_t i = 0; i < stop; ++i) write_record(*output, i);
      }
      uint64_t seen = 0;
      auto output =
          open_output(options_for(path), Existing::kResume, [&](const SpooledRecord& spooled) {
            EXPECT_EQ(spooled.ordinal, seen);
            EXPECT_EQ(spooled.id, "r" + std::to_string(seen));
            EXPECT_EQ(spooled.rejected, seen == 2);
            ++seen;
          });
      EXPECT_EQ(seen, stop);
      EXPECT_EQ(output->next_ordinal(), stop);
      EXPECT_EQ(output->torn_bytes(), 0U);
      for (uint64_t i = stop; i < 10; ++i) write_record(*output, i);
      output->finish();
      output.reset();
      EXPECT_TRUE(read_file(path) == expected) << name << " stopped after " << stop;
      EXPECT_EQ(read_file(with_suffix(path, ".rejects.jsonl")),
                read_file(with_suffix(folder / name, ".rejects.jsonl")));
    }
  }
}

// A spool cut at any byte: whole frames are kept, the torn one is cut off and told.
TEST(Output, LinesStandAsGivenAndInOrderOverResumes) {
  const TestFolder folder;
  OutputOptions options = options_for(folder / "lines.jsonl");
  options.format = OutputFormat::kLines;
  const auto lines_of = [](uint64_t i) {
    std::string lines;
    for (uint64_t n = 0; n <= i % 3; ++n) {  // a record may have several lines
      lines += "{\"id\": \"r" + std::to_string(i) + "\", \"n\": " + std::to_string(n) + "}\n";
    }
    return lines;
  };
  std::string expected;
  for (uint64_t i = 0; i < 6; ++i) {
    auto output = open_output(options, i == 0 ? Existing::kRefuse : Existing::kResume);
    ASSERT_EQ(output->next_ordinal(), i);
    if (i == 4) {
      output->reject({.ordinal = i, .line = i, .id = "r4", .reason = "too long"});
      continue;
    }
    output->append_lines({.ordinal = i, .line = i, .id = "r" + std::to_string(i)}, lines_of(i));
    expected += lines_of(i);
  }
  auto output = open_output(options, Existing::kResume);
  const OutputCounts counts = output->finish();
  EXPECT_EQ(counts.embedded, 5U);
  EXPECT_EQ(counts.rejected, 1U);
  EXPECT_EQ(read_file(options.path), expected);
  EXPECT_TRUE(open_output(options, Existing::kResume)->complete());
}

TEST(Output, FindsTornTailAtEveryByte) {
  const TestFolder folder;
  const auto path = folder / "x.jsonl";
  const auto spool = folder / "x.jsonl.spool";
  std::vector<size_t> ends;  // of the spool after each record
  {
    auto output = open_output(options_for(path), Existing::kRefuse);
    ends.push_back(std::filesystem::file_size(spool));
    for (uint64_t i = 0; i < 10; ++i) {
      write_record(*output, i);
      ends.push_back(std::filesystem::file_size(spool));
    }
  }
  const std::string bytes = read_file(spool);
  ASSERT_EQ(bytes.size(), ends.back());
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    write_file(spool, bytes.substr(0, cut));
    const auto output = open_output(options_for(path), Existing::kResume);
    const auto whole = std::upper_bound(ends.begin(), ends.end(), cut) - ends.begin();
    if (whole == 0) {  // not even the header
      EXPECT_EQ(output->next_ordinal(), 0U) << cut;
    } else {
      EXPECT_EQ(output->next_ordinal(), static_cast<uint64_t>(whole - 1)) << cut;
      EXPECT_EQ(output->torn_bytes(), cut - ends[static_cast<size_t>(whole - 1)]) << cut;
    }
  }
}

// A flipped byte in a frame ends what is believed; the records before it stay.
TEST(Output, FindsFlippedByte) {
  const TestFolder folder;
  const auto path = folder / "x.jsonl";
  const auto spool = folder / "x.jsonl.spool";
  size_t third = 0;
  {
    auto output = open_output(options_for(path), Existing::kRefuse);
    for (uint64_t i = 0; i < 4; ++i) {
      if (i == 3) third = std::filesystem::file_size(spool);
      output->append(record(i));
    }
  }
  const std::string bytes = read_file(spool);
  for (size_t at = third; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    write_file(spool, damaged);
    EXPECT_EQ(open_output(options_for(path), Existing::kResume)->next_ordinal(), 3U) << at;
  }
}

TEST(Output, ForeignOrNewerSpoolIsRefused) {
  const TestFolder folder;
  const auto path = folder / "x.jsonl";
  write_file(folder / "x.jsonl.spool", std::string(200, 'x'));
  EXPECT_THAT(
      problem_of(ErrorKind::kFile, [&] { open_output(options_for(path), Existing::kResume); }),
      HasSubstr("not a spool"));
}

TEST(Output, FingerprintMismatchNamesTheKey) {
  const TestFolder folder;
  const auto path = folder / "x.jsonl";
  { open_output(options_for(path), Existing::kRefuse)->append(record(0)); }
  OutputOptions other = options_for(path);
  other.fingerprint = R"({"input": "a.fasta", "model": "large"})";
  EXPECT_THAT(problem_of(ErrorKind::kUsage, [&] { open_output(other, Existing::kResume); }),
              HasSubstr(R"(model was "tiny", is "large")"));
  other = options_for(path);
  other.dtype = DType::kFloat16;
  EXPECT_THAT(problem_of(ErrorKind::kUsage, [&] { open_output(other, Existing::kResume); }),
              HasSubstr(R"(output_dtype was "float32", is "float16")"));
  EXPECT_EQ(open_output(options_for(path), Existing::kResume)->next_ordinal(), 1U);
}

TEST(Output, ExistingFilesAreRefusedUnlessAsked) {
  const TestFolder folder;
  const auto path = folder / "x.safetensors";
  { open_output(options_for(path), Existing::kRefuse)->append(record(0)); }
  const auto refuse = [&] { open_output(options_for(path), Existing::kRefuse); };
  EXPECT_THAT(problem_of(ErrorKind::kUsage, refuse), HasSubstr("x.safetensors.spool"));
  open_output(options_for(path), Existing::kResume)->finish();
  EXPECT_THAT(problem_of(ErrorKind::kUsage, refuse), HasSubstr("--overwrite"));
  {
    auto output = open_output(options_for(path), Existing::kOverwrite);
    EXPECT_EQ(output->next_ordinal(), 0U);
    output->append(record(0));
    EXPECT_TRUE(std::filesystem::exists(path)) << "stays until the new one is whole";
    output->finish();
  }
  std::filesystem::remove(with_suffix(path, ".run.json"));
  EXPECT_THAT(
      problem_of(ErrorKind::kUsage, [&] { open_output(options_for(path), Existing::kResume); }),
      HasSubstr("run.json"));
}

TEST(Output, ResumeOfACompleteRunHasNothingToDo) {
  const TestFolder folder;
  const auto path = folder / "x.npy";
  const std::string expected = whole_run(path);
  const auto output = open_output(options_for(path), Existing::kResume);
  EXPECT_TRUE(output->complete());
  EXPECT_EQ(output->counts().embedded, 9U);
  EXPECT_EQ(output->counts().rejected, 1U);
  OutputOptions other = options_for(path);
  other.fingerprint = R"({"model": "tiny", "input": "b.fasta"})";
  EXPECT_THAT(problem_of(ErrorKind::kUsage, [&] { open_output(other, Existing::kResume); }),
              HasSubstr(R"(input was "a.fasta", is "b.fasta")"));
  EXPECT_TRUE(read_file(path) == expected);
}

// Whatever has been done to a finished output, --resume does not call it complete.
TEST(Output, ResumeRefusesAnOutputThatHasChanged) {
  const TestFolder folder;
  const auto path = folder / "x.npy";
  whole_run(path);
  const auto problem = [&] {
    return problem_of(ErrorKind::kUsage,
                      [&] { open_output(options_for(path), Existing::kResume); });
  };
  for (const std::string suffix : {"", ".ids.txt", ".rejects.jsonl"}) {
    const auto file = with_suffix(path, suffix);
    const std::string bytes = read_file(file);
    write_file(file, bytes.substr(0, bytes.size() - 1));
    EXPECT_THAT(problem(), testing::AllOf(HasSubstr(file.string()), HasSubstr("bytes now"),
                                          HasSubstr("--overwrite")));
    for (size_t at = 0; at < bytes.size(); ++at) {
      std::string other = bytes;
      other[at] = static_cast<char>(other[at] ^ 1);
      write_file(file, other);
      EXPECT_THAT(problem(), HasSubstr("its bytes have changed"));
    }
    std::filesystem::remove(file);
    if (!suffix.empty()) {
      EXPECT_THAT(problem(), HasSubstr("is gone"));
    }
    write_file(file, bytes);
    EXPECT_TRUE(open_output(options_for(path), Existing::kResume)->complete());
  }
}

// Of a file too large to be read whole, the ends and pieces in between count.
TEST(Output, MarksOfLargeFiles) {
  const TestFolder folder;
  const auto path = folder / "large";
  for (const size_t size : {size_t{4} << 20, (size_t{4} << 20) + 65537, size_t{20} << 20}) {
    std::string bytes(size, 'x');
    write_file(path, bytes);
    const FileMark mark = mark_of(path, "");
    EXPECT_EQ(mark.size, size);
    for (const size_t at : {size_t{0}, size_t{65535}, size - 65536, size - 1}) {
      bytes[at] = 'y';
      write_file(path, bytes);
      EXPECT_NE(mark_of(path, "").xxh3, mark.xxh3) << at << " of " << size;
      bytes[at] = 'x';
    }
    bytes.replace(size / 2, size / 32, size / 32, 'y');
    write_file(path, bytes);
    EXPECT_NE(mark_of(path, "").xxh3, mark.xxh3) << size;
  }
}

TEST(Output, TwoRunsCannotShareASpool) {
  const TestFolder folder;
  const auto path = folder / "x.h5";
  const auto first = open_output(options_for(path), Existing::kRefuse);
  EXPECT_THAT(
      problem_of(ErrorKind::kUsage, [&] { open_output(options_for(path), Existing::kResume); }),
      HasSubstr("another run is writing"));
}

TEST(Output, AnEmptySpoolDoesNotStay) {
  const TestFolder folder;
  { open_output(options_for(folder / "x.h5"), Existing::kRefuse); }
  EXPECT_TRUE(folder.names().empty());
}

// A limit on file size stands in for a full disk: the write fails in the middle of a frame.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() { ::setrlimit(RLIMIT_FSIZE, &before_); }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
};

TEST(Output, FullDiskLeavesAResumableSpool) {
  for (const std::string name : {"x.h5", "x.safetensors"}) {
    const TestFolder folder;
    const auto path = folder / name;
    constexpr int64_t kRows = 50;
    const OutputOptions options = options_for(path, false);
    {
      const FileSizeLimit limit(2000);
      auto output = open_output(options, Existing::kRefuse);
      EXPECT_THAT(
          problem_of(ErrorKind::kIo,
                     [&] {
                       for (uint64_t i = 0; i < 9; ++i) output->append(record(i, kRows));
                     }),
          testing::AllOf(HasSubstr(".spool: cannot write"), HasSubstr("2 records are safe")));
    }
    auto output = open_output(options, Existing::kResume);
    EXPECT_EQ(output->next_ordinal(), 2U);
    for (uint64_t i = 2; i < 9; ++i) output->append(record(i, kRows));
    {
      const FileSizeLimit limit(1000);  // now the output file does not fit
      EXPECT_THAT(problem_of(ErrorKind::kIo, [&] { output->finish(); }), HasSubstr("--resume"));
    }
    EXPECT_FALSE(std::filesystem::exists(path));
    output.reset();
    open_output(options, Existing::kResume)->finish();
    const TestFolder other;
    auto whole = open_output(options_for(other / name, false), Existing::kRefuse);
    for (uint64_t i = 0; i < 9; ++i) whole->append(record(i, kRows));
    whole->finish();
    EXPECT_TRUE(read_file(path) == read_file(other / name));
  }
}

TEST(Output, ADiskThatIsFullAtOnceLeavesNothing) {
  const TestFolder folder;
  const FileSizeLimit limit(0);
  problem_of(ErrorKind::kIo, [&] { open_output(options_for(folder / "x.h5"), Existing::kRefuse); });
  EXPECT_TRUE(folder.names().empty());
}

TEST(Output, OptionsThatDoNotGoTogether) {
  const auto problem = [](const OutputOptions& options) {
    return problem_of(ErrorKind::kUsage, [&] { check_output_options(options); });
  };
  EXPECT_THAT(problem(options_for("x.npy", false)), HasSubstr("--pool"));
  OutputOptions options = options_for("x.npy");
  options.dtype = DType::kBFloat16;
  EXPECT_THAT(problem(options), HasSubstr("no bfloat16"));
  options = options_for("x.h5", false);
  options.layout = Hdf5Layout::kTmbed;
  EXPECT_THAT(problem(options), HasSubstr("float16"));
  options = options_for("x.jsonl");
  options.layout = Hdf5Layout::kFlat;
  EXPECT_THAT(problem(options), testing::AllOf(HasSubstr("--layout flat"), HasSubstr("jsonl")));
  EXPECT_EQ(output_format_of("X.H5"), OutputFormat::kHdf5);
  EXPECT_EQ(output_format_of("x.SafeTensors"), OutputFormat::kSafetensors);
  options = options_for("-");
  options.format = OutputFormat::kHdf5;
  EXPECT_THAT(problem(options), HasSubstr("JSONL"));
  EXPECT_THAT(problem([] {
                OutputOptions folder = options_for("x.h5");
                folder.path = std::filesystem::temp_directory_path();
                return folder;
              }()),
              HasSubstr("folder"));
  EXPECT_THAT(problem_of(ErrorKind::kUsage, [] { output_format_of("x.csv"); }),
              HasSubstr(".h5, .hdf5, .npy, .safetensors, .jsonl"));
}

TEST(Output, KeysAndIds) {
  OutputOptions options = options_for("x.h5");
  EXPECT_EQ(output_key(options, "a/b.c"), "a_b_c");
  EXPECT_EQ(output_key(options_for("x.safetensors"), "a/b.c"), "a/b.c");
  EXPECT_EQ(id_problem(options, "sp|P1 é"), "");
  EXPECT_NE(id_problem(options, std::string("a\0b", 3)), "");
  EXPECT_NE(id_problem(options, ""), "");
  EXPECT_NE(id_problem(options_for("x.safetensors"), "__metadata__"), "");
}

TEST(Output, Digests) {
  // RFC 1321
  const SequenceDigest digest = digest_of("abc");
  EXPECT_EQ(digest[0], 0x90);
  EXPECT_EQ(digest[15], 0x72);
  EXPECT_EQ(sequence_of_ids({5, 6, 1}, {}), "5 6 1");
  EXPECT_NE(sequence_of_ids({5, 6, 1}, {1, 0, 1}), sequence_of_ids({5, 6, 1}, {1, 1, 0}));
}

}  // namespace
}  // namespace quintet
