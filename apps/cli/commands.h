// The commands of the command line. Each returns the exit code; errors are thrown.
#ifndef QUINTET_APPS_CLI_COMMANDS_H_
#define QUINTET_APPS_CLI_COMMANDS_H_

#include <chrono>
#include <string>
#include <vector>

#include "engine/options.h"

namespace quintet {

struct Invocation {
  std::vector<std::string> operands;  // what is not an option
  std::chrono::steady_clock::time_point started;
};

int command_embed(const Options& options, const Invocation& invocation);
int command_generate(const Options& options, const Invocation& invocation);
int command_score(const Options& options, const Invocation& invocation);
int command_plan(const Options& options, const Invocation& invocation);
int command_tokenize(const Options& options, const Invocation& invocation);
int command_info(const Options& options, const Invocation& invocation);
int command_devices(const Options& options, const Invocation& invocation);
int command_merge(const Options& options, const Invocation& invocation);

}  // namespace quintet

#endif  // QUINTET_APPS_CLI_COMMANDS_H_
