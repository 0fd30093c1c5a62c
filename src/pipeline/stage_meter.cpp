#include "pipeline/stage_meter.h"

#include <utility>

namespace quintet {
namespace {

double seconds(const std::atomic<int64_t>& nanoseconds) {
  return static_cast<double>(nanoseconds.load()) * 1e-9;
}

}  // namespace

StageStats StageMeter::stats(std::string device, StageRange range) const {
  StageStats stats;
  stats.device = std::move(device);
  stats.range = range;
  stats.busy_seconds = seconds(busy_ns_);
  stats.link_seconds = seconds(link_ns_);
  stats.waiting_seconds = seconds(waiting_ns_);
  stats.batches = batches_;
  stats.tokens = tokens_;
  return stats;
}

void StageMeter::add(std::atomic<int64_t>& nanoseconds, std::string_view name,
                     Clock::time_point begin, Work work) {
  constexpr std::chrono::microseconds kTooShortToShow{5};
  const auto end = Clock::now();
  nanoseconds += std::chrono::duration_cast<std::chrono::nanoseconds>(end - begin).count();
  if (trace_ == nullptr || end - begin < kTooShortToShow) return;
  trace_->add(
      track_,
      {.name = name, .begin = begin, .end = end, .batch = work.number, .tokens = work.tokens});
}

}  // namespace quintet
