// One stage of a pipeline at work: a thread that takes micro-batches from its queue, runs the
// stage's blocks on them and passes them on. Private to the pipeline.
//
// An asynchronous device is kept busy: a micro-batch that has come in is enqueued while the one
// before it is computed, and what leaves is copied beside it. Two are under way at most. Where none
// has come in, nothing is held back: the one under way is waited for, though the next may come
// meanwhile. That costs a stage a copy's time once: while it lasts the queue fills by one, and
// from then on there is always a next one, if this stage is the one that the others wait for.
//
// How it ends: a stage whose queue is closed and empty closes the next one, and so on to the
// results. A stage that fails also aborts its own queue and those before it, so that nobody waits
// for it; the micro-batches that were already past it still come out. abort() ends all at once.
#ifndef QUINTET_PIPELINE_STAGE_H_
#define QUINTET_PIPELINE_STAGE_H_

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/bounded_queue.h"
#include "link/link.h"
#include "pipeline/failures.h"
#include "pipeline/pipeline.h"
#include "pipeline/stage_meter.h"

namespace quintet {

// A micro-batch between stages, with its hidden states.
struct BatchParcel : Parcel {
  MicroBatch batch;
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

  bool put(BatchParcel parcel);  // from the thread before; false where the queue is closed
  void end_of_input();
  void wake() { part_.device->wake(); }  // a queue that this stage may wait for has changed
  BoundedQueue<BatchParcel>& input() { return input_; }
  StageStats stats() const;

 private:
  using Clock = StageMeter::Clock;

  // A micro-batch whose ops have been called, and may be under way. What they threw waits for its
  // turn, so that the micro-batches before it are passed on first.
  struct Begun {
    BatchParcel parcel;       // hidden: what is to leave, all rows or pooled ones
    uint64_t place = 0;       // micro-batches taken before it
    uint64_t mark = 0;        // behind its ops
    Clock::time_point since;  // when they could begin, the device being free
    bool reached = false;
    std::exception_ptr failure;
  };

  void run();
  void work();  // until the end of input; throws what the stage throws
  std::optional<Begun> begin_next();
  std::optional<BatchParcel> take();
  void begin(Begun& begun);
  void reach(Begun& begun);  // waits for its mark
  bool finish(Begun begun, Begun* following);
  bool pass_on(BatchParcel parcel, uint64_t mark, Begun* following);
  bool deliver(BatchParcel parcel, uint64_t mark, Begun* following);
  HostRows to_host(const BatchParcel& parcel, uint64_t mark);
  template <typename T>
  bool put_into(BoundedQueue<T>& queue, T item, Begun* following);
  void settle();
  void close_next();
  template <typename Ready>
  void lend_until(const Ready& ready);
  void note_failure();  // the exception being handled

  PipelineStage part_;
  const size_t index_;
  StageShared& shared_;
  std::string label_;  // "stage 0 (cpu[0], blocks 0-2)"
  BoundedQueue<BatchParcel> input_;
  Stage* previous_ = nullptr;
  Stage* next_ = nullptr;
  std::unique_ptr<Link> link_;  // to the next; receive() runs on that one's thread
  std::shared_ptr<HostBuffers> buffers_;
  StageMeter meter_;

  uint64_t taken_ = 0;              // micro-batches
  Clock::time_point free_since_;    // when the latest mark was reached
  std::vector<uint64_t> ordinals_;  // of the micro-batch that is being finished
  uint64_t place_ = 0;              // of the same
  std::thread thread_;
};

}  // namespace quintet

#endif  // QUINTET_PIPELINE_STAGE_H_
