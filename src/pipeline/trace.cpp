#include "pipeline/trace.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iterator>
#include <nlohmann/json.hpp>

#include "core/error.h"

namespace quintet {
namespace {

constexpr size_t kFlushBytes = size_t{64} << 10;
constexpr std::chrono::seconds kFlushEvery{2};

double microseconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

// A JSON string, quotes included; bytes that are not UTF-8 are replaced.
std::string quoted(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

Trace::Trace(const std::filesystem::path& path)
    : path_(path.string()),
      file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)),
      start_(std::chrono::steady_clock::now()),
      flushed_(start_) {
  if (file_ < 0) {
    fail(ErrorKind::kIo, "trace {}: cannot be written: {}", path_, std::strerror(errno));
  }
}

Trace::~Trace() {
  try {
    close();
  } catch (const Error&) {  // close() was there to be called
  }
}

int Trace::add_track(std::string_view name) {
  const std::scoped_lock lock(mutex_);
  const int track = tracks_++;
  append(fmt::format(R"({{"ph":"M","name":"thread_name","pid":1,"tid":{},"args":{{"name":{}}}}})",
                     track, quoted(name)));
  append(fmt::format(
      R"({{"ph":"M","name":"thread_sort_index","pid":1,"tid":{},"args":{{"sort_index":{}}}}})",
      track, track));
  return track;
}

void Trace::add(int track, const TraceEvent& event) {
  std::string args;
  if (event.batch >= 0) fmt::format_to(std::back_inserter(args), R"("batch":{})", event.batch);
  if (event.tokens >= 0) {
    fmt::format_to(std::back_inserter(args), R"({}"tokens":{})", args.empty() ? "" : ",",
                   event.tokens);
  }
  const std::string text = fmt::format(
      R"({{"ph":"X","name":{},"pid":1,"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{{{}}}}})",
      quoted(event.name), track, microseconds(event.begin - start_),
      microseconds(event.end - event.begin), args);
  const std::scoped_lock lock(mutex_);
  append(text);
}

void Trace::close() {
  const std::scoped_lock lock(mutex_);
  if (file_ >= 0) {
    buffer_ += first_ ? "[]\n" : "\n]\n";
    flush();
    if (::close(file_) != 0 && error_ == 0) error_ = errno;
    file_ = -1;
  }
  if (error_ != 0) {
    fail(ErrorKind::kIo, "trace {}: writing failed: {}", path_, std::strerror(error_));
  }
}

// The comma goes before an event, so that the file ends in a whole one at any time.
void Trace::append(std::string_view event) {
  if (file_ < 0) return;
  buffer_ += first_ ? "[\n" : ",\n";
  first_ = false;
  buffer_ += event;
  const auto now = std::chrono::steady_clock::now();
  if (buffer_.size() < kFlushBytes && now - flushed_ < kFlushEvery) return;
  flushed_ = now;
  flush();
}

void Trace::flush() {
  std::string_view rest = buffer_;
  while (!rest.empty() && error_ == 0) {
    const ssize_t written = ::write(file_, rest.data(), rest.size());
    if (written >= 0) {
      rest.remove_prefix(static_cast<size_t>(written));
    } else if (errno != EINTR) {
      error_ = errno;
    }
  }
  buffer_.clear();
}

}  // namespace quintet
