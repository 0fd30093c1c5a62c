#include "conformance/isolation.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/error.h"

namespace quintet::conformance {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

volatile sig_atomic_t interrupted = 0;

// Turns SIGINT and SIGTERM into a flag, so that what is to be removed at the end is.
class SignalWatch {
 public:
  SignalWatch() {
    interrupted = 0;
    struct sigaction action = {};
    action.sa_handler = [](int) { interrupted = 1; };
    ::sigaction(SIGINT, &action, &interrupt_);
    ::sigaction(SIGTERM, &action, &terminate_);
  }
  ~SignalWatch() { restore(); }
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  void restore() const {
    ::sigaction(SIGINT, &interrupt_, nullptr);
    ::sigaction(SIGTERM, &terminate_, nullptr);
  }

 private:
  struct sigaction interrupt_ = {};
  struct sigaction terminate_ = {};
};

// One line of JSON for each event: {"prepared": text}, {"started": item}, {"done": text},
// {"error": message, "kind": number}.
void send(int pipe, const json& event) {
  const std::string line = event.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
  for (size_t sent = 0; sent < line.size();) {
    const ssize_t n = ::write(pipe, line.data() + sent, line.size() - sent);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) ::_exit(3);  // nobody reads
    sent += static_cast<size_t>(n);
  }
}

[[noreturn]] void work_off(const IsolatedWork& work, size_t first, int pipe) {
  try {
    send(pipe, {{"prepared", work.prepare()}});
  } catch (const Error& error) {
    send(pipe, {{"error", error.what()}, {"kind", static_cast<int>(error.kind())}});
    ::_exit(1);
  } catch (const std::exception& error) {
    send(pipe, {{"error", error.what()}, {"kind", static_cast<int>(ErrorKind::kDevice)}});
    ::_exit(1);
  }
  for (size_t item = first; item < work.n_items; ++item) {
    send(pipe, {{"started", item}});
    send(pipe, {{"done", work.run(item)}});
  }
  std::fflush(nullptr);
  ::_exit(0);  // what the backends leave behind is not this program's to tidy up
}

// A process that works, as the watching one sees it.
class Worker {
 public:
  Worker(const IsolatedWork& work, size_t first, const SignalWatch& signals) : limit_(work.limit) {
    int ends[2];
    std::fflush(nullptr);
    if (::pipe(ends) != 0) fail(ErrorKind::kIo, "no pipe: {}", std::strerror(errno));
    process_ = ::fork();
    if (process_ < 0) fail(ErrorKind::kIo, "no further process: {}", std::strerror(errno));
    if (process_ == 0) {
      ::close(ends[0]);
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      signals.restore();
      work_off(work, first, ends[1]);
    }
    ::close(ends[1]);
    pipe_ = ends[0];
  }
  ~Worker() {
    ::close(pipe_);
    if (process_ > 0) {
      ::kill(process_, SIGKILL);
      ::waitpid(process_, nullptr, 0);
    }
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // The next event, or none once the process has ended; ending() then says how. Nothing within the
  // limit ends it.
  std::optional<json> next() {
    const auto deadline = Clock::now() + limit_;
    while (true) {
      const size_t end = buffer_.find('\n');
      if (end != std::string::npos) {
        json event = json::parse(buffer_.substr(0, end));
        buffer_.erase(0, end + 1);
        return event;
      }
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
      pollfd poll_for{.fd = pipe_, .events = POLLIN, .revents = 0};
      const int ready =
          left.count() <= 0 ? 0 : ::poll(&poll_for, 1, static_cast<int>(left.count()));
      if (interrupted != 0) fail(ErrorKind::kInterrupted, "interrupted");
      if (ready < 0) continue;
      if (ready == 0) {
        ending_ = fmt::format("still at it after {} s", limit_.count());
        return std::nullopt;
      }
      char bytes[4096];
      const ssize_t n = ::read(pipe_, bytes, sizeof(bytes));
      if (n <= 0) break;
      buffer_.append(bytes, static_cast<size_t>(n));
    }
    wait();
    return std::nullopt;
  }

  const std::string& ending() const { return ending_; }

 private:
  void wait() {
    int status = 0;
    while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
    }
    process_ = -1;
    if (WIFSIGNALED(status)) {
      ending_ =
          fmt::format("ended by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
    } else {
      ending_ = fmt::format("ended with status {}", WEXITSTATUS(status));
    }
  }

  std::chrono::seconds limit_;
  pid_t process_ = -1;
  int pipe_ = -1;
  std::string buffer_;
  std::string ending_;
};

}  // namespace

void run_isolated(const IsolatedWork& work, const IsolatedEvents& events) {
  const SignalWatch signals;
  size_t next = 0;
  for (bool first = true; next < work.n_items; first = false) {
    Worker worker(work, next, signals);
    auto event = worker.next();
    if (event && event->contains("error")) {
      throw Error(static_cast<ErrorKind>(event->at("kind").get<int>()),
                  event->at("error").get<std::string>());
    }
    if (!event) {
      fail(ErrorKind::kDevice, "looking for the devices: the process {}", worker.ending());
    }
    if (first) events.ready(event->at("prepared").get<std::string>());
    while (next < work.n_items) {
      if (!worker.next()) {
        events.lost(next++, worker.ending(), 0);
        break;
      }
      events.started(next);
      const auto started = Clock::now();
      event = worker.next();
      if (!event) {
        events.lost(next++, worker.ending(),
                    std::chrono::duration<double>(Clock::now() - started).count());
        break;
      }
      events.done(next++, event->at("done").get<std::string>());
    }
  }
}

}  // namespace quintet::conformance
