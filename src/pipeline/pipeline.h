// Stages that all work at once, each with a thread that drives its device, and links between them.
//
//   push() -> queue -> stage 0 -> link, queue -> stage 1 -> ... -> queue -> pop()
#ifndef QUINTET_PIPELINE_PIPELINE_H_
#define QUINTET_PIPELINE_PIPELINE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/micro_batch.h"
#include "link/host_buffers.h"
#include "models/encoder.h"
#include "pipeline/failures.h"
#include "pipeline/stage_meter.h"

namespace quintet {

struct PipelineStage {
  Device* device = nullptr;  // outlives the pipeline; no other stage has it
  std::unique_ptr<EncoderStage> blocks;
  StageRange range;
};

struct PipelineOptions {
  size_t queue_capacity = 1;  // micro-batches waiting before each stage, and finished ones
  // What leaves the last stage: all rows, or one row per sequence, pooled over its
  // [pool_begin, pool_end).
  std::optional<Pooling> pooling = std::nullopt;
  bool normalize = false;  // of pooled rows
  bool lend = true;        // a stage that waits lends its device to the others, where it can
  Trace* trace = nullptr;  // gets one track per stage; outlives the pipeline
};

// A micro-batch with its results on the host.
struct BatchResult {
  MicroBatch batch;
  // [n_tokens, d_model] after the final norm, or with pooling [n_seqs, d_model]; row-major. Goes
  // back to the pipeline for reuse when dropped, from any thread, even after the pipeline is gone.
  HostRows rows;
};

// push() and finish() from one thread, pop() from another (or the same one, with no more in flight
// than fit: a stage and its queue hold 1 + queue_capacity each, finished ones queue_capacity; a
// stage on an asynchronous device may hold one more).
// abort() and stats() from any thread. First in, first out.
class Pipeline {
 public:
  // Throws Error(kUsage) without stages, or where two stages share a device.
  Pipeline(std::vector<PipelineStage> stages, int64_t d_model, PipelineOptions options = {});
  ~Pipeline();  // aborts what is under way, joins the threads; soon: after one micro-batch at most
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  bool push(MicroBatch batch);  // waits for room; false after a failure, an abort or finish()
  void finish();                // no more micro-batches will come
  // The next result in order; nothing when all is done, and after abort(). When a stage has thrown,
  // the micro-batches before the failed one still come out; then each call throws BatchError, of
  // the earliest micro-batch that failed.
  std::optional<BatchResult> pop();
  void abort();  // throws away what is under way; push() and pop() return soon
  std::vector<StageStats> stats() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace quintet

#endif  // QUINTET_PIPELINE_PIPELINE_H_
