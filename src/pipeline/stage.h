// One stage of a pipeline at work: a thread that takes micro-batches from its queue, runs the
// stage's blocks on them and passes them on. Private to the pipeline.
//
// How it ends: a stage whose queue is closed and empty closes the next one, and so on to the
// results. A stage that fails also aborts its own queue and those before it, so that nobody waits
// for it; the micro-batches that were already past it still come out. abort() ends all at once.
#ifndef QUINTET_PIPELINE_STAGE_H_
#define QUINTET_PIPELINE_STAGE_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/bounded_queue.h"
#include "link/link.h"
#include "pipeline/pipeline.h"
#include "pipeline/trace.h"

namespace quintet {

// The first failure in the order of the micro-batches, which need not be the first in time.
class Failures {
 public:
  void add(uint64_t place, BatchError error);
  void raise() const;  // throws it where there is one

 private:
  mutable std::mutex mutex_;
  uint64_t place_ = 0;
  std::optional<BatchError> first_;
};

class Stage;

// What the stages of one pipeline have in common.
struct StageShared {
  StageShared(const PipelineOptions& pipeline_options, int64_t width)
      : options(pipeline_options), d_model(width), results(pipeline_options.queue_capacity) {}

  void end();  // the last stage is done, or all are to stop: nobody needs lending any more

  const PipelineOptions options;
  const int64_t d_model;
  BoundedQueue<BatchResult> results;
  Failures failures;
  std::atomic<bool> aborted{false};
  std::atomic<bool> ended{false};
  std::vector<Stage*> stages;
};

class Stage {
 public:
  Stage(PipelineStage part, size_t index, StageShared& shared);

  void connect(Stage& next);
  void start();
  void join();  // after the queues were closed or aborted

  bool put(Parcel parcel);  // from the thread before; false where the queue is closed
  void end_of_input();
  void wake() { part_.device->wake(); }  // a queue that this stage may wait for has changed
  BoundedQueue<Parcel>& input() { return input_; }
  StageStats stats() const;

 private:
  using Clock = std::chrono::steady_clock;

  void run();
  void work();  // until the end of input; throws what the stage throws
  std::optional<Parcel> take();
  void compute(Parcel& parcel);
  bool pass_on(Parcel parcel);
  bool deliver(BatchResult result);
  BatchResult to_host(Parcel parcel);
  void close_next();
  template <typename Ready>
  void lend_until(const Ready& ready);
  void fail_with(ErrorKind kind, const char* message);
  // Adds the time since `begin` to a sum and to the trace.
  void account(std::atomic<int64_t>& nanoseconds, std::string_view name, Clock::time_point begin,
               const MicroBatch* batch);

  PipelineStage part_;
  const size_t index_;
  StageShared& shared_;
  std::string label_;  // "stage 0 (cpu[0], blocks 0-2)"
  BoundedQueue<Parcel> input_;
  Stage* previous_ = nullptr;
  Stage* next_ = nullptr;
  std::unique_ptr<Link> link_;  // to the next; receive() runs on that one's thread
  std::shared_ptr<HostBuffers> buffers_;
  int track_ = 0;

  std::vector<uint64_t> ordinals_;  // of the micro-batch under way
  uint64_t place_ = 0;              // micro-batches taken before it
  std::atomic<int64_t> busy_ns_{0};
  std::atomic<int64_t> link_ns_{0};
  std::atomic<int64_t> waiting_ns_{0};
  std::atomic<uint64_t> batches_{0};
  std::atomic<int64_t> tokens_{0};
  std::thread thread_;
};

}  // namespace quintet

#endif  // QUINTET_PIPELINE_STAGE_H_
