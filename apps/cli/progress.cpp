#include "progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "say.h"

namespace quintet {
namespace {

using namespace std::chrono_literals;

int terminal_columns() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::string text_of(const JobProgress& progress, const std::string& unit) {
  const double speed =
      progress.seconds > 0 ? static_cast<double>(progress.tokens) / progress.seconds : 0;
  return fmt::format("{} record{}, {:.0f} {}/s", progress.records, progress.records == 1 ? "" : "s",
                     speed, unit);
}

}  // namespace

std::string clock_time(double seconds) {
  if (seconds < 9.95) return fmt::format("{:.1f} s", seconds);
  const auto all = static_cast<int64_t>(std::lround(seconds));
  if (all < 60) return fmt::format("{} s", all);
  if (all >= 3600) return fmt::format("{}:{:02}:{:02}", all / 3600, all / 60 % 60, all % 60);
  return fmt::format("{}:{:02}", all / 60, all % 60);
}

ProgressBar::ProgressBar(bool quiet, std::string unit)
    : unit_(std::move(unit)),
      quiet_(quiet),
      terminal_(isatty(STDERR_FILENO) != 0),
      last_(std::chrono::steady_clock::now() - (terminal_ ? 1s : 0s)) {}

void ProgressBar::show(const JobProgress& progress) {
  if (quiet_) return;
  const std::scoped_lock lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  if (now - last_ < (terminal_ ? std::chrono::milliseconds(100) : std::chrono::milliseconds(30s))) {
    return;
  }
  last_ = now;
  std::string text = text_of(progress, unit_);
  const double share = progress.share;
  if (share > progress.share_before) {
    const double left = progress.seconds * (1 - share) / (share - progress.share_before);
    text += ", " + clock_time(left) + " left";
  }
  if (!terminal_) {
    say("{:3.0f} %  {}\n", 100 * share, text);
    return;
  }
  if (share > 0) {
    const int room = terminal_columns() - static_cast<int>(text.size()) - 10;
    const int width = std::clamp(room, 0, 40);
    const auto full = static_cast<size_t>(std::lround(share * width));
    std::string bar;
    for (size_t i = 0; i < static_cast<size_t>(width); ++i) bar += i < full ? "█" : "░";
    text = fmt::format("{} {:3.0f} %  {}", bar, 100 * share, text);
  }
  say("\r\033[K{}", text);
  std::fflush(stderr);
  shown_ = true;
}

void ProgressBar::print(const std::string& line) {
  const std::scoped_lock lock(mutex_);
  say("{}{}\n", shown_ ? "\r\033[K" : "", line);
  shown_ = false;
}

void ProgressBar::clear() {
  const std::scoped_lock lock(mutex_);
  if (!shown_) return;
  say("\r\033[K");
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace quintet
