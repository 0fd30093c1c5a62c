// The command line: reads options by the table in engine/options.cpp, calls the command, turns
// errors into exit codes: 0 done, 1 some records failed or the run did, 2 wrong usage.
#include <fcntl.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <deque>
#include <exception>
#include <iterator>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "commands.h"
#include "core/error.h"
#include "engine/options.h"
#include "engine/version.h"
#include "quintet/devices.h"

namespace quintet {
namespace {

struct CommandSpec {
  Command command;
  const char* name;
  const char* help;
  int (*run)(const Options&, const Invocation&);
  const char* operand;  // a positional argument; null: none
  bool many;
};

constexpr CommandSpec kCommands[] = {
    {kEmbed, "embed", "Embed records: proteins, texts or ids to vectors on disk", command_embed,
     nullptr, false},
    {kGenerate, "generate", "Generate text or tokens with a T5 or GPT-2 model", command_generate,
     nullptr, false},
    {kScore, "score", "Tell how likely a T5 or GPT-2 model finds given tokens", command_score,
     nullptr, false},
    {kPlan, "plan", "Show which blocks would sit on which device, memory and time", command_plan,
     nullptr, false},
    {kTokenize, "tokenize", "Print ids, pieces and offsets of every record as JSONL",
     command_tokenize, nullptr, false},
    {kInfo, "info", "Describe a checkpoint from its config and file headers", command_info, "DIR",
     false},
    {kDevices, "devices", "List the devices of this machine", command_devices, nullptr, false},
    {kMerge, "merge", "Join the outputs of --shard runs", command_merge, "FILES", true},
};

// The values as given; applied to Options once parsing is over, so that the table's checks report
// errors in one way.
struct Given {
  const OptionSpec* spec;
  std::string value;
  bool flag = false;
  CLI::Option* option = nullptr;
};

void add_options(CLI::App& app, Command command, std::deque<Given>& given) {
  for (const OptionSpec& spec : option_table()) {
    if ((spec.commands & command) == 0) continue;
    Given& entry = given.emplace_back(Given{&spec, "", false, nullptr});
    const std::string name = "--" + std::string(spec.name);
    std::string help(spec.help);
    if (spec.value.empty()) {
      entry.option = app.add_flag(name, entry.flag, help);
      continue;
    }
    if (!spec.initial.empty()) help += " [" + std::string(spec.initial) + "]";
    entry.option = app.add_option(name, entry.value, help)->type_name(std::string(spec.value));
    if (spec.required) entry.option->required();
  }
}

std::string command_names() {
  std::string names;
  for (const CommandSpec& spec : kCommands)
    names += (names.empty() ? "" : ", ") + std::string(spec.name);
  return names;
}

// What CLI11 would say less clearly: which word is no command, which no option.
void check_command(int argc, char** argv) {
  if (argc < 2) fail(ErrorKind::kUsage, "no command is given; there are {}", command_names());
  const std::string word = argv[1];
  const bool known = std::any_of(std::begin(kCommands), std::end(kCommands),
                                 [&](const CommandSpec& spec) { return word == spec.name; });
  const bool asks = word == "-h" || word == "--help" || word == "--version";
  if (!known && !asks) {
    fail(ErrorKind::kUsage, "{}: no such command; there are {}", word, command_names());
  }
}

void check_extras(const CLI::App& command) {
  for (const std::string& word : command.remaining()) {
    if (word.starts_with("-")) {
      fail(ErrorKind::kUsage, "{}: no such option; quintet {} --help lists them", word,
           command.get_name());
    }
  }
  if (!command.remaining().empty()) {
    fail(ErrorKind::kUsage, "{}: nothing is known to do with it; quintet {} --help shows the usage",
         command.remaining().front(), command.get_name());
  }
}

int exit_code(const Error& error) {
  switch (error.kind()) {
    case ErrorKind::kUsage:
    case ErrorKind::kDevice:
      return 2;
    case ErrorKind::kInterrupted:
      return 130;
    default:
      return 1;
  }
}

int run(int argc, char** argv) {
  const auto started = std::chrono::steady_clock::now();
  check_command(argc, argv);
  CLI::App app("quintet: T5-family models and GPT-2, split by layers over the devices there are",
               "quintet");
  app.set_version_flag("--version", std::string("quintet ") + kVersion);
  app.require_subcommand(1);
  app.failure_message([&](const CLI::App*, const CLI::Error& error) {
    return fmt::format("quintet: {}; quintet {} --help shows the usage\n", error.what(), argv[1]);
  });

  std::deque<Given> given[std::size(kCommands)];
  std::vector<std::string> operands;
  CLI::App* apps[std::size(kCommands)];
  for (size_t i = 0; i < std::size(kCommands); ++i) {
    const CommandSpec& spec = kCommands[i];
    apps[i] = app.add_subcommand(spec.name, spec.help);
    if (spec.operand != nullptr) {
      auto* operand = apps[i]->add_option(spec.operand, operands, "")->required();
      if (!spec.many) operand->expected(1);
    }
    add_options(*apps[i], spec.command, given[i]);
    apps[i]->allow_extras();
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) {  // a misspelt option is why another one is missing
      for (const CLI::App* command : apps) {
        if (command->parsed()) check_extras(*command);
      }
    }
    return app.exit(error) == 0 ? 0 : 2;
  }

  for (size_t i = 0; i < std::size(kCommands); ++i) {
    if (!apps[i]->parsed()) continue;
    check_extras(*apps[i]);
    Options options;
    for (const Given& entry : given[i]) {
      if (entry.option->count() > 0) entry.spec->set(options, entry.value);
    }
    for (const std::string& file : options.backends) load_backend(file);
    return kCommands[i].run(options, {.operands = operands, .started = started});
  }
  return 2;
}

}  // namespace
}  // namespace quintet

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);     // a closed pipe and
  std::signal(SIGXFSZ, SIG_IGN);     // a file beyond the limit are failed writes, with a message
  for (int fd = 0; fd <= 2; ++fd) {  // or a file of ours would take the place of a closed one
    if (::fcntl(fd, F_GETFD) < 0 && ::open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY) != fd)
      return 1;
  }
  try {
    return quintet::run(argc, argv);
  } catch (const quintet::Error& error) {
    std::fprintf(stderr, "quintet: %s\n", error.what());
    return quintet::exit_code(error);
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "quintet: out of memory\n");
    return 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "quintet: %s\n", error.what());
    return 1;
  }
}
