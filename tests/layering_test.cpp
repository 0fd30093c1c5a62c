// Includes between the rooms go one way, models name no backend, and nobody but the backends room
// looks into a backend.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

// The rooms that each room may include, besides itself and the public headers.
const std::map<std::string, std::set<std::string>>& rooms() {
  static const std::set<std::string> kAll = {
      "core", "input",  "tokenizer", "batch",    "placement",  "weights", "backends",
      "ops",  "models", "link",      "pipeline", "generation", "output"};
  static const std::map<std::string, std::set<std::string>> kRooms = {
      {"core", {}},
      {"input", {"core"}},
      {"tokenizer", {"core"}},
      {"batch", {"core"}},
      {"placement", {"core"}},
      {"weights", {"core"}},
      {"output", {"core"}},
      {"backends", {"core"}},
      {"ops", {"core", "backends"}},
      {"models", {"core", "backends", "ops", "weights"}},
      {"link", {"core", "backends"}},
      {"pipeline", {"core", "backends", "ops", "models", "batch", "placement", "link"}},
      {"generation",
       {"core", "backends", "ops", "models", "batch", "placement", "link", "pipeline"}},
      {"engine", kAll},
      {"conformance", {"core"}},  // and, as any program, the public headers
  };
  return kRooms;
}

struct Line {
  fs::path file;  // below the source folder
  int number = 0;
  std::string text;
};

std::vector<Line> lines_of(const std::string& folder) {
  std::vector<Line> lines;
  const fs::path root = QUINTET_SOURCE;
  if (!fs::exists(root / folder)) return lines;
  for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
    const std::string extension = entry.path().extension().string();
    if (extension != ".h" && extension != ".cpp") continue;
    std::ifstream file(entry.path());
    int number = 0;
    for (std::string text; std::getline(file, text);) {
      lines.push_back({entry.path().lexically_relative(root), ++number, text});
    }
  }
  return lines;
}

// What an #include "..." names; empty for every other line.
std::string quoted_include(const std::string& text) {
  static const std::regex kInclude("^\\s*#\\s*include\\s*\"([^\"]+)\"");
  if (text.find("include") == std::string::npos) return "";
  std::smatch match;
  return std::regex_search(text, match, kInclude) ? match[1].str() : "";
}

std::string first_part(const fs::path& path) { return path.begin()->string(); }

bool is_test(const Line& line) { return line.file.string().ends_with("_test.cpp"); }

std::string where(const Line& line) {
  std::ostringstream text;
  text << line.file.string() << ":" << line.number << ": " << line.text;
  return text.str();
}

TEST(Layering, IncludesGoOneWay) {
  size_t checked = 0;
  for (const Line& line : lines_of("src")) {
    const std::string room = (++line.file.begin())->string();
    const auto allowed = rooms().find(room);
    ASSERT_NE(allowed, rooms().end()) << room << " is not a room; see docs/architecture.md";
    const std::string included = quoted_include(line.text);
    if (included.empty()) continue;
    ++checked;
    const std::string other = first_part(included);
    EXPECT_TRUE(other == room || other == "quintet" || allowed->second.count(other) == 1)
        << where(line) << "\n  " << room << " must not see " << other;
  }
  EXPECT_GT(checked, 50);
}

TEST(Layering, PublicHeadersStandAlone) {
  for (const Line& line : lines_of("include")) {
    const std::string included = quoted_include(line.text);
    EXPECT_TRUE(included.empty() || first_part(included) == "quintet") << where(line);
  }
}

// Programs call the engine; from below they take errors and what the planner draws.
TEST(Layering, ProgramsSeeTheEngine) {
  static const std::set<std::string> kAllowed = {"engine", "core", "placement", "conformance"};
  for (const Line& line : lines_of("apps")) {
    const std::string other = first_part(quoted_include(line.text) + "/");
    if (rooms().count(other) == 0) continue;  // the public headers, or the program's own
    EXPECT_EQ(kAllowed.count(other), 1) << where(line);
  }
}

TEST(Layering, NobodyLooksIntoABackend) {
  static const std::regex kInside("^backends/[^/]+/");
  for (const Line& line : lines_of("src")) {
    if ((++line.file.begin())->string() == "backends" || is_test(line)) continue;
    EXPECT_FALSE(std::regex_search(quoted_include(line.text), kInside)) << where(line);
  }
}

TEST(Layering, ModelsNameNoBackend) {
  static const std::regex kBackend("\\b(cpu|opencl|xpu|cuda|rocm|metal)\\b",
                                   std::regex::icase | std::regex::optimize);
  for (const Line& line : lines_of("src/models")) {
    if (is_test(line)) continue;  // runs on some device
    EXPECT_FALSE(std::regex_search(line.text, kBackend)) << where(line);
  }
}

// Header guards do, and so does the text of kernels, which several languages' compilers read.
TEST(Layering, NoConditionNamesABackend) {
  static const std::regex kCondition("^\\s*#\\s*(if|ifdef|ifndef|elif)\\b.*(CUDA|OPENCL|MPI)");
  static const std::regex kGuard("^#ifndef QUINTET_[A-Z0-9_]+_H_$");
  for (const Line& line : lines_of("src")) {
    if (line.text.find('#') == std::string::npos || std::regex_match(line.text, kGuard)) continue;
    if (line.file.parent_path().filename() == "kernels") continue;
    EXPECT_FALSE(std::regex_search(line.text, kCondition)) << where(line);
  }
}

}  // namespace
