// fail(): throws an Error with a formatted message that says what, where and what to do.
#ifndef QUINTET_CORE_ERROR_H_
#define QUINTET_CORE_ERROR_H_

#include <fmt/format.h>

#include <utility>

#include "quintet/error.h"

namespace quintet {

template <typename... Args>
[[noreturn]] void fail(ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(kind, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace quintet

#endif  // QUINTET_CORE_ERROR_H_
