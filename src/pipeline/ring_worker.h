// One device of a ring at work: a thread that takes jobs from the device's queue, runs the stage of
// the stack they belong to and passes them on. Private to the ring.
//
// An asynchronous device gets the next job while one is computed, as a pipeline's stage does: jobs
// under way together belong to different groups, so none waits for the other's result. Two are
// under way at most, and none is held back for a next one. Nothing is enqueued behind a step whose
// logits are chosen from here: choosing reads back, and what is read would come behind the next
// job's ops, while the stages before wait for it.
//
// How it ends: stop() of what the workers share, after a failure, an abort or at the end; each
// worker then finishes what it is computing and takes nothing more.
#ifndef QUINTET_PIPELINE_RING_WORKER_H_
#define QUINTET_PIPELINE_RING_WORKER_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "link/link.h"
#include "pipeline/failures.h"
#include "pipeline/head.h"
#include "pipeline/host_tensor.h"
#include "pipeline/ring.h"
#include "pipeline/stage_meter.h"

namespace quintet {

// Jobs on their way; `place` counts all jobs of the ring.
struct EncodeTravel : Parcel {
  uint64_t tag = 0;
  uint64_t place = 0;
  MicroBatch batch;
};
struct StepTravel : Parcel {
  uint64_t tag = 0;
  uint64_t place = 0;
  StepBatch step;
  SourceRows source;
  LogitRequest request;
  std::vector<uint64_t> ordinals;
};

class RingWorker;

// What the workers of one ring have in common.
class RingShared {
 public:
  explicit RingShared(const RingOptions& ring_options)
      : options(ring_options), buffers(HostBuffers::create(4)) {}

  bool stopped() const { return stopped_; }
  void stop();       // nothing more is computed; wakes everybody
  void abort();      // the same, and wait() gives nothing
  void begin_job();  // before it is put into a queue
  void deliver(RingResult result);
  RingResult wait();  // as Ring::wait()
  size_t in_flight() const;

  const RingOptions options;
  const std::shared_ptr<HostBuffers> buffers;  // encoder rows of devices outside host memory
  Failures failures;
  std::vector<RingWorker*> workers;

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<RingResult> results_;
  size_t in_flight_ = 0;
  std::atomic<bool> stopped_{false};
  bool aborted_ = false;
};

class RingWorker {
 public:
  RingWorker(RingDevice part, RingShared& shared);

  const RingDevice& part() const { return part_; }
  void connect_encoder(RingWorker& next);  // to the device with the following blocks
  void connect_decoder(RingWorker& next);
  void start();
  void join();  // after stop()
  void put(std::unique_ptr<EncodeTravel> job);
  void put(std::unique_ptr<StepTravel> job);
  void wake();  // something that it may wait for has changed
  StageStats encoder_stats() const;
  StageStats decoder_stats() const;

 private:
  using Clock = StageMeter::Clock;

  // This worker's part in one of the two chains.
  struct Chain {
    std::string label;  // "encoder stage 0 (cpu[0], blocks 0-2)"
    Link* from = nullptr;
    std::unique_ptr<Link> to;
    RingWorker* next = nullptr;
    std::unique_ptr<StageMeter> meter;
  };

  // One of the two, or neither; ops that have been called for it may be under way. What they threw
  // waits for its turn.
  struct Job {
    std::unique_ptr<EncodeTravel> encode;
    std::unique_ptr<StepTravel> step;
    uint64_t mark = 0;        // behind its ops
    Clock::time_point since;  // when they could begin, the device being free
    std::exception_ptr failure;

    explicit operator bool() const { return encode != nullptr || step != nullptr; }
  };

  void run();
  void work();  // until stop()
  bool has_work() const;
  bool may_follow(const Job& job) const;  // the next one, before it is done
  Job begin_next();                       // no job after stop()
  Job take();                             // the same
  void begin_encode(Job& job);
  void begin_step(Job& job);
  void finish();  // now_
  void finish_encode();
  void finish_step();
  void busy(const Chain& chain, const char* name, StageMeter::Work work);
  void receive(const Chain& chain, Parcel& parcel, StageMeter::Work work);
  void send(const Chain& chain, Parcel& parcel, StageMeter::Work work);
  void settle();
  void note_failure();
  StageMeter& waiting_meter();

  RingDevice part_;
  RingShared& shared_;
  Chain encoder_;
  Chain decoder_;
  std::optional<Head> head_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::unique_ptr<StepTravel>> steps_;
  std::deque<std::unique_ptr<EncodeTravel>> encodes_;

  int steps_let_by_ = 0;  // by the first of encodes_
  Job now_;               // that is finished next
  Clock::time_point free_since_;
  std::thread thread_;
};

}  // namespace quintet

#endif  // QUINTET_PIPELINE_RING_WORKER_H_
