// Runs the built program as a user would: arguments and standard input in, exit code and both
// outputs out; may be killed on the way.
#ifndef QUINTET_TESTS_CLI_PROGRAM_H_
#define QUINTET_TESTS_CLI_PROGRAM_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace quintet {

struct Outcome {
  int code = -1;   // exit code; -1: ended by `signal`
  int signal = 0;  // that ended it
  std::string out;
  std::string err;
};

struct RunSettings {
  std::string input = {};   // on standard input
  std::string output = {};  // a file that is there, for standard output; Outcome::out stays empty
  // Asked every millisecond while the program runs; a signal that is not 0 is sent, once.
  std::function<int()> signal_now = {};
  uint64_t most_file_bytes =
      0;  // RLIMIT_FSIZE; 0: none. Writing beyond it fails, as on a full disk.
};

// `arguments` without the program's name.
Outcome run_quintet(const std::vector<std::string>& arguments, const RunSettings& settings = {});

// `embed` with a model folder, an input and an output, and further arguments.
Outcome embed(const std::filesystem::path& model, const std::filesystem::path& input,
              const std::filesystem::path& output, const std::vector<std::string>& more = {},
              const RunSettings& settings = {});

// What the repository ships: 6 blocks of width 64, a ProtT5 vocabulary of single residues.
std::filesystem::path example_model();
std::filesystem::path model_fixture(const std::string& name);
// "cpu[N]" of the cores this process may use.
std::vector<std::string> one_core_devices();

}  // namespace quintet

#endif  // QUINTET_TESTS_CLI_PROGRAM_H_
