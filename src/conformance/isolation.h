// Work in a process of its own, as a backend under test may crash or hang: who watches never opens
// a device, and goes on with a new process behind the item that ended the last one.
#ifndef QUINTET_CONFORMANCE_ISOLATION_H_
#define QUINTET_CONFORMANCE_ISOLATION_H_

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

namespace quintet::conformance {

struct IsolatedWork {
  // Runs first in each process; what it returns goes to `ready`, of the first process. An Error
  // that it throws is thrown to the caller.
  std::function<std::string()> prepare;
  size_t n_items = 0;
  std::function<std::string(size_t item)> run;  // does not throw
  std::chrono::seconds limit{300};              // for the preparation, and for each item
};

struct IsolatedEvents {
  std::function<void(const std::string& prepared)> ready;
  std::function<void(size_t item)> started;
  std::function<void(size_t item, const std::string& text)> done;  // what run() returned
  // How the process ended before the item did: "ended by signal 11 (Segmentation fault)".
  std::function<void(size_t item, const std::string& how, double seconds)> lost;
};

// The items in their order. To be called where no other thread runs. Throws Error(kDevice) where a
// process ends while it prepares, Error(kInterrupted) after SIGINT or SIGTERM.
void run_isolated(const IsolatedWork& work, const IsolatedEvents& events);

}  // namespace quintet::conformance

#endif  // QUINTET_CONFORMANCE_ISOLATION_H_
