// One device of a ring at work: a thread that takes jobs from the device's queue, runs the stage of
// the stack they belong to and passes them on. Private to the ring.
//
// How it ends: stop() of what the workers share, after a failure, an abort or at the end; each
// worker then finishes what it is computing and takes nothing more.
#ifndef QUINTET_PIPELINE_RING_WORKER_H_
#define QUINTET_PIPELINE_RING_WORKER_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
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

  void run();
  bool work();  // one job; false after stop()
  bool has_work() const;
  void take();  // into encode_ or step_; neither after stop()
  void encode();
  void step();
  void receive(const Chain& chain, Parcel& parcel, StageMeter::Work work);
  void send(const Chain& chain, Parcel& parcel, StageMeter::Work work);
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

  int steps_let_by_ = 0;                  // by the first of encodes_
  std::unique_ptr<StepTravel> step_;      // under way
  std::unique_ptr<EncodeTravel> encode_;  // under way
  std::thread thread_;
};

}  // namespace quintet

#endif  // QUINTET_PIPELINE_RING_WORKER_H_
