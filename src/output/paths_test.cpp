#include "output/paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

#include "core/error.h"
#include "output/test_folder.h"

namespace quintet {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

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

TEST(Paths, OneFileUnderSeveralNames) {
  const TestFolder folder;
  write_file(folder / "a", "x");
  write_file(folder / "b", "x");
  fs::create_symlink(folder / "a", folder / "link");
  fs::create_hard_link(folder / "a", folder / "hard");
  fs::create_directory_symlink(folder / ".", folder / "again");
  EXPECT_TRUE(same_file(folder / "a", folder / "./a"));
  EXPECT_TRUE(same_file(folder / "a", folder / "link"));
  EXPECT_TRUE(same_file(folder / "a", folder / "hard"));
  EXPECT_FALSE(same_file(folder / "a", folder / "b"));
  EXPECT_FALSE(same_file(folder / "a", folder / "new"));
  EXPECT_TRUE(same_file(folder / "new", folder / "again/new"));
  EXPECT_FALSE(same_file(folder / "new", folder / "newer"));
  EXPECT_TRUE(same_file(folder / "no/new", folder / "again/no/new"));
  EXPECT_TRUE(same_file("new-in-here", fs::current_path() / "new-in-here"));
}

TEST(Paths, ListsEveryFileOfAnOutput) {
  OutputOptions options;
  options.path = "x.npy";
  options.format = OutputFormat::kNpy;
  std::vector<std::string> names;
  for (const NamedPath& file : output_files(options)) names.push_back(file.path.string());
  EXPECT_THAT(names, testing::UnorderedElementsAre(
                         "x.npy", "x.npy.partial", "x.npy.spool", "x.npy.rejects.jsonl",
                         "x.npy.rejects.jsonl.partial", "x.npy.run.json", "x.npy.run.json.partial",
                         "x.npy.ids.txt", "x.npy.partial.ids.txt"));
  options.path = "-";
  EXPECT_TRUE(output_files(options).empty());
}

TEST(Paths, NoFileIsWrittenTwiceOrReadAndWritten) {
  const TestFolder folder;
  const fs::path model = folder / "model";
  fs::create_directory(model);
  write_file(folder / "in.fasta", ">a\nM\n");
  write_file(folder / "blob", "x");
  fs::create_symlink(folder / "blob", model / "model.safetensors");
  const auto problem = [&](const NamedPath& written) {
    return problem_of(ErrorKind::kUsage, [&] {
      check_no_clash({{.option = "--input", .path = folder / "in.fasta", .is_input = true},
                      {.option = "--model", .path = model, .is_input = true},
                      {.option = "--output", .path = folder / "x.h5"},
                      written});
    });
  };
  EXPECT_THAT(problem({.option = "--stats", .path = folder / "./in.fasta"}),
              AllOf(HasSubstr("--stats"), HasSubstr("--input"), HasSubstr("in.fasta")));
  EXPECT_THAT(problem({.option = "--stats", .path = folder / "x.h5"}),
              AllOf(HasSubstr("--stats"), HasSubstr("--output"), HasSubstr("twice")));
  EXPECT_THAT(problem({.option = "--trace", .path = model / "config.json"}),
              AllOf(HasSubstr("--trace"), HasSubstr("--model")));
  EXPECT_THAT(problem({.option = "--svg", .path = folder / "blob"}),
              AllOf(HasSubstr("--svg"), HasSubstr("--model")));
  check_no_clash({{.option = "--input", .path = folder / "in.fasta", .is_input = true},
                  {.option = "--other", .path = folder / "in.fasta", .is_input = true},
                  {.option = "--input", .path = "-", .is_input = true},
                  {.option = "--output", .path = "-"},
                  {.option = "--trace", .path = ""},
                  {.option = "--svg", .path = ""},
                  {.option = "--stats", .path = "/dev/null"},
                  {.option = "--log", .path = "/dev/null"},
                  {.option = "--model", .path = model, .is_input = true},
                  {.option = "--output", .path = folder / "x.h5"}});
}

TEST(Paths, SaysBeforehandWhatCannotBeWritten) {
  const TestFolder folder;
  const auto problem = [&](const fs::path& path) {
    return problem_of(ErrorKind::kUsage, [&] { check_writable(path, "--stats"); });
  };
  check_writable(folder / "new", "--stats");
  check_writable("new-in-here", "--stats");
  check_writable("/dev/null", "--stats");
  EXPECT_TRUE(folder.names().empty());
  EXPECT_THAT(problem(folder / "no/new"),
              AllOf(HasSubstr("--stats"), HasSubstr("No such file"), HasSubstr("make the folder")));
  write_file(folder / "file", "x");
  check_writable(folder / "file", "--stats");
  EXPECT_THAT(problem(folder / "file/new"), HasSubstr("Not a directory"));
  fs::create_directory(folder / "sub");
  EXPECT_THAT(problem(folder / "sub"), HasSubstr("Is a directory"));
  check_writable(folder / std::string(255, 'x'), "--stats");
  EXPECT_THAT(problem(folder / std::string(256, 'x')),
              AllOf(HasSubstr("File name too long"), HasSubstr("256 bytes")));
  if (::geteuid() == 0) return;  // whom no folder refuses
  ::chmod((folder / "sub").c_str(), 0555);
  EXPECT_THAT(problem(folder / "sub/new"), HasSubstr("Permission denied"));
  ::chmod((folder / "file").c_str(), 0444);
  EXPECT_THAT(problem(folder / "file"), HasSubstr("Permission denied"));
}

TEST(Paths, AnOutputWhoseFilesCannotBeWrittenIsRefusedAtOnce) {
  const TestFolder folder;
  const auto problem = [&](const std::string& name) {
    OutputOptions options;
    options.path = folder / name;
    options.format = OutputFormat::kHdf5;
    options.d_model = 3;
    return problem_of(ErrorKind::kUsage, [&] { open_output(options, Existing::kRefuse); });
  };
  fs::create_directory(folder / "x.h5.spool");
  EXPECT_THAT(problem("x.h5"), AllOf(HasSubstr("x.h5.spool"), HasSubstr("Is a directory")));
  EXPECT_THAT(problem(std::string(231, 'x') + ".h5"),
              AllOf(HasSubstr("File name too long"), HasSubstr(".rejects.jsonl.partial")));
  EXPECT_THAT(problem("no/x.h5"), HasSubstr("No such file"));
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"x.h5.spool"}));
}

}  // namespace
}  // namespace quintet
