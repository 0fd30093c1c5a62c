// A track of the trace beside those of the stages: what reading and writing did when. Without a
// trace it costs a comparison.
#ifndef QUINTET_ENGINE_TRACE_TRACK_H_
#define QUINTET_ENGINE_TRACE_TRACK_H_

#include <chrono>
#include <cstdint>
#include <string_view>

#include "pipeline/trace.h"

namespace quintet {

class TraceTrack {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // trace: may be null; outlives the track.
  TraceTrack(Trace* trace, std::string_view name)
      : trace_(trace), track_(trace != nullptr ? trace->add_track(name) : 0) {}

  Time now() const { return trace_ != nullptr ? std::chrono::steady_clock::now() : Time{}; }
  // From `begin` until now; what is too short to be seen is left out.
  void add(std::string_view name, Time begin, int64_t tokens = -1) const {
    constexpr std::chrono::microseconds kTooShortToShow{5};
    if (trace_ == nullptr) return;
    const Time end = now();
    if (end - begin < kTooShortToShow) return;
    trace_->add(track_, {.name = name, .begin = begin, .end = end, .tokens = tokens});
  }

 private:
  Trace* trace_;
  int track_;
};

}  // namespace quintet

#endif  // QUINTET_ENGINE_TRACE_TRACK_H_
