// quintet-conformance: runs the public classes on the devices that a spec file names, and says
// what holds. Exit status: 0 all passed, 1 something failed, 2 it could not run, 77 skipped.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <fstream>
#include <string>

#include "conformance/report.h"
#include "conformance/run.h"
#include "conformance/spec.h"
#include "conformance/suite.h"
#include "core/error.h"

namespace quintet::conformance {
namespace {

constexpr int kPassed = 0;
constexpr int kFailed = 1;
constexpr int kCouldNotRun = 2;
constexpr int kSkipped = 77;  // what test drivers take for a skip
constexpr int kInterrupted = 130;

struct Arguments {
  std::string spec;
  std::string json;
  std::vector<std::string> classes;
  std::vector<std::string> tests;
  int limit = 300;
  bool list = false;
};

void print(std::FILE* stream, const std::string& text) {
  [[maybe_unused]] const size_t written = std::fwrite(text.data(), 1, text.size(), stream);
}

std::string list_text() {
  std::string text = "classes:\n";
  for (const ModelClass& c : model_classes()) text += fmt::format("  {}\n", c.name);
  text += "tests:\n";
  for (const TestCase& test : test_cases()) {
    text += fmt::format("  {:<34} {}\n", test.name, test.what);
  }
  return text;
}

void write_json(const std::string& path, const Report& report) {
  const std::string text =
      report_json(report).dump(1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::ofstream file(path, std::ios::trunc);
  file << text << "\n";
  file.close();
  if (!file) fail(ErrorKind::kIo, "--json {}: cannot be written", path);
}

// One line on a terminal, overwritten; elsewhere nothing.
Progress progress_line() {
  if (::isatty(STDERR_FILENO) == 0) return [](auto&&...) {};
  return [](size_t done, size_t n_cells, const std::string& model_class, const std::string& test) {
    print(stderr, fmt::format("\r\x1b[K{}/{} {} {}", done + 1, n_cells, model_class, test));
  };
}

int run(const Arguments& arguments) {
  if (arguments.list) {
    print(stdout, list_text());
    return kPassed;
  }
  if (arguments.spec.empty()) {
    fail(ErrorKind::kUsage,
         "--device-spec FILE is missing; docs/conformance.md says what stands in such a file");
  }
  const RunOptions options{.spec = read_device_spec(arguments.spec),
                           .classes = arguments.classes,
                           .tests = arguments.tests,
                           .limit = std::chrono::seconds(arguments.limit)};
  Report report;
  try {
    report = run_suite(options, progress_line());
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kDevice || !options.spec.skip_if_missing) throw;
    print(stdout, fmt::format("skipped: {}\n", error.what()));
    return kSkipped;
  }
  if (::isatty(STDERR_FILENO) != 0) print(stderr, "\r\x1b[K");
  report.version = QUINTET_VERSION;
  print(stdout, report_text(report, ::isatty(STDOUT_FILENO) != 0));
  if (!arguments.json.empty()) write_json(arguments.json, report);
  return report.passed() ? kPassed : kFailed;
}

int parse_and_run(int argc, char** argv) {
  Arguments arguments;
  CLI::App app(
      "quintet-conformance: tests the public classes, split over the devices that a spec names",
      "quintet-conformance");
  app.set_version_flag("--version", std::string("quintet-conformance ") + QUINTET_VERSION);
  app.add_option("--device-spec", arguments.spec, "JSON file that names the devices")
      ->type_name("FILE");
  app.add_option("--json", arguments.json, "write a report for programs")->type_name("FILE");
  app.add_option("--only", arguments.classes, "only this class; may stand several times")
      ->type_name("CLASS");
  app.add_option("--test", arguments.tests, "only this test; may stand several times")
      ->type_name("NAME");
  app.add_option("--timeout", arguments.limit, "seconds for one test of one class [300]")
      ->type_name("SECONDS")
      ->check(CLI::Range(1, 86400));
  app.add_flag("--list", arguments.list, "list the classes and the tests");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    fail(ErrorKind::kUsage, "{}; quintet-conformance --help shows the usage", error.what());
  }
  return run(arguments);
}

}  // namespace
}  // namespace quintet::conformance

int main(int argc, char** argv) {
  using namespace quintet::conformance;
  try {
    return parse_and_run(argc, argv);
  } catch (const quintet::Error& error) {
    print(stderr, fmt::format("quintet-conformance: {}\n", error.what()));
    return error.kind() == quintet::ErrorKind::kInterrupted ? kInterrupted : kCouldNotRun;
  } catch (const std::exception& error) {
    print(stderr, fmt::format("quintet-conformance: {}\n", error.what()));
    return kCouldNotRun;
  }
}
