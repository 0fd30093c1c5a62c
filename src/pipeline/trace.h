// What each stage did when, as a Chrome trace (chrome://tracing, ui.perfetto.dev): a JSON array of
// events, one track per stage and whatever tracks the caller adds.
//
// The file grows as the run goes, so memory is bounded, and it opens in the viewers even when the
// run was killed: an array without its closing bracket is allowed there.
#ifndef QUINTET_PIPELINE_TRACE_H_
#define QUINTET_PIPELINE_TRACE_H_

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>

namespace quintet {

struct TraceEvent {
  std::string_view name;  // "compute", "waiting", "link", "write"
  std::chrono::steady_clock::time_point begin;
  std::chrono::steady_clock::time_point end;
  int64_t batch = -1;   // number of the micro-batch; -1: none
  int64_t tokens = -1;  // -1: not said
};

// Thread-safe.
class Trace {
 public:
  explicit Trace(const std::filesystem::path& path);  // throws Error(kIo)
  ~Trace();                                           // closes, without a word of what went wrong
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  int add_track(std::string_view name);  // tracks are shown in the order in which they are added
  void add(int track, const TraceEvent& event);
  // Writes the rest. Throws Error(kIo) where any write since the start has failed; add() never
  // does.
  void close();

 private:
  void append(std::string_view event);
  void flush();

  std::mutex mutex_;
  std::string path_;
  int file_ = -1;
  int error_ = 0;  // errno of the first write that failed; nothing is written after it
  int tracks_ = 0;
  bool first_ = true;
  std::string buffer_;
  std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point flushed_;
};

}  // namespace quintet

#endif  // QUINTET_PIPELINE_TRACE_H_
