#include "program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "output/test_folder.h"

namespace quintet {
namespace {

// In the child: only calls that are safe after fork().
[[noreturn]] void become_program(const std::vector<char*>& arguments, const std::string& in,
                                 const std::string& out, const std::string& err,
                                 uint64_t most_file_bytes) {
  const int fd_in = ::open(in.c_str(), O_RDONLY);
  const int fd_out = ::open(out.c_str(), O_WRONLY | O_CREAT, 0600);
  const int fd_err = ::open(err.c_str(), O_WRONLY | O_CREAT, 0600);
  ::dup2(fd_in, STDIN_FILENO);
  ::dup2(fd_out, STDOUT_FILENO);
  ::dup2(fd_err, STDERR_FILENO);
  if (most_file_bytes > 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{.rlim_cur = most_file_bytes, .rlim_max = most_file_bytes};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ::execv(arguments.front(), arguments.data());
  ::_exit(127);
}

int wait_for(pid_t child, const std::function<int()>& signal_now) {
  int status = 0;
  if (!signal_now) {
    ::waitpid(child, &status, 0);
    return status;
  }
  bool sent = false;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    const int signal = sent ? 0 : signal_now();
    if (signal != 0) {
      ::kill(child, signal);
      sent = true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return status;
}

}  // namespace

Outcome run_quintet(const std::vector<std::string>& arguments, const RunSettings& settings) {
  ::setenv("XDG_CACHE_HOME", QUINTET_TEST_CACHE, 1);  // device speeds: measured once for all tests
  const TestFolder folder;
  const std::string in = (folder / "in").string();
  const std::string out = settings.output.empty() ? (folder / "out").string() : settings.output;
  const std::string err = (folder / "err").string();
  write_file(in, settings.input);
  std::vector<std::string> words{QUINTET_PROGRAM};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);

  const pid_t child = ::fork();
  if (child == 0) become_program(pointers, in, out, err, settings.most_file_bytes);
  const int status = wait_for(child, settings.signal_now);
  Outcome outcome;
  if (WIFEXITED(status)) outcome.code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) outcome.signal = WTERMSIG(status);
  if (settings.output.empty()) outcome.out = read_file(out);
  outcome.err = read_file(err);
  return outcome;
}

Outcome embed(const std::filesystem::path& model, const std::filesystem::path& input,
              const std::filesystem::path& output, const std::vector<std::string>& more,
              const RunSettings& settings) {
  std::vector<std::string> arguments{"embed",        "--model",  model.string(), "--input",
                                     input.string(), "--output", output.string()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_quintet(arguments, settings);
}

std::filesystem::path example_model() {
  return std::filesystem::path(QUINTET_SOURCE) / "examples" / "prott5-tiny";
}

std::filesystem::path model_fixture(const std::string& name) {
  return std::filesystem::path(QUINTET_FIXTURES) / "models" / name;
}

std::vector<std::string> one_core_devices() {
  std::vector<std::string> names;
  cpu_set_t set;
  CPU_ZERO(&set);
  ::sched_getaffinity(0, sizeof(set), &set);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) names.push_back("cpu[" + std::to_string(cpu) + "]");
  }
  return names;
}

}  // namespace quintet
