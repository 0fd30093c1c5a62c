// say(): a message for people on standard error. That nobody can read it is no reason to fail.
#ifndef QUINTET_APPS_CLI_SAY_H_
#define QUINTET_APPS_CLI_SAY_H_

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>

namespace quintet {

template <typename... Args>
void say(fmt::format_string<Args...> format, Args&&... args) {
  const std::string text = fmt::format(format, std::forward<Args>(args)...);
  [[maybe_unused]] const size_t written = std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace quintet

#endif  // QUINTET_APPS_CLI_SAY_H_
