#include "stop_signals.h"

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <mutex>
#include <stop_token>
#include <string_view>

namespace quintet {
namespace {

constexpr std::chrono::milliseconds kLook{50};        // how often the watcher looks
constexpr std::chrono::milliseconds kPatience{1500};  // for the run to stop by itself
constexpr int kStopped = 130;                         // exit code

std::atomic<bool> stop_asked = false;  // all that a signal handler may touch
static_assert(std::atomic<bool>::is_always_lock_free);

void say_at_once(std::string_view message) {
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, message.data(), message.size());
}

void on_signal(int signal) {
  say_at_once("\nquintet: stopping; the same signal again stops at once\n");
  stop_asked = true;
  std::signal(signal, SIG_DFL);
}

void watch(const std::stop_token& over) {
  std::mutex mutex;
  std::condition_variable_any changed;
  std::unique_lock lock(mutex);
  std::chrono::milliseconds waited{0};
  while (!over.stop_requested() && waited < kPatience) {
    changed.wait_for(lock, over, kLook, [] { return false; });
    if (stop_asked) waited += kLook;
  }
  if (over.stop_requested()) return;
  say_at_once(
      "quintet: interrupted in the middle of a micro-batch; the records before it are safe, "
      "--resume goes on with the next\n");
  std::_Exit(kStopped);
}

}  // namespace

StopSignals::StopSignals(bool can_resume) {
  if (!can_resume) return;
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  watcher_ = std::jthread(watch);
}

const std::atomic<bool>& StopSignals::asked() const { return stop_asked; }

}  // namespace quintet
