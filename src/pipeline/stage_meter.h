// How long a stage computed, passed rows on and waited; each such stretch also goes to the trace.
#ifndef QUINTET_PIPELINE_STAGE_METER_H_
#define QUINTET_PIPELINE_STAGE_METER_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "models/encoder.h"
#include "pipeline/trace.h"

namespace quintet {

struct StageStats {
  std::string stack = "encoder";  // or "decoder"
  std::string device;
  StageRange range;
  // Computing, pooling, choosing: of an asynchronous device from when a micro-batch's ops were
  // called, or the one before it was done, until it was done.
  double busy_seconds = 0;
  double link_seconds = 0;     // taking rows over and passing them on; an asynchronous device may
                               //   be busy meanwhile
  double waiting_seconds = 0;  // for input, for room behind; the device may have been lent
  uint64_t batches = 0;
  int64_t tokens = 0;
};

// Written by the stage's thread, read by any.
class StageMeter {
 public:
  using Clock = std::chrono::steady_clock;
  // What a stretch of time was spent on; numbers below 0: not said.
  struct Work {
    int64_t number = -1;
    int64_t tokens = -1;
  };

  // trace: may be null; `track` is one of its tracks.
  StageMeter(Trace* trace, int track) : trace_(trace), track_(track) {}

  // Each: the time from `begin` to now.
  void busy(std::string_view name, Clock::time_point begin, Work work) {
    add(busy_ns_, name, begin, work);
  }
  void link(Clock::time_point begin, Work work) { add(link_ns_, "link", begin, work); }
  void waiting(Clock::time_point begin) { add(waiting_ns_, "waiting", begin, {}); }

  void count(int64_t tokens) {
    ++batches_;
    tokens_ += tokens;
  }
  StageStats stats(std::string device, StageRange range) const;

 private:
  void add(std::atomic<int64_t>& nanoseconds, std::string_view name, Clock::time_point begin,
           Work work);

  Trace* trace_;
  int track_;
  std::atomic<int64_t> busy_ns_{0};
  std::atomic<int64_t> link_ns_{0};
  std::atomic<int64_t> waiting_ns_{0};
  std::atomic<uint64_t> batches_{0};
  std::atomic<int64_t> tokens_{0};
};

}  // namespace quintet

#endif  // QUINTET_PIPELINE_STAGE_METER_H_
