// Encoder and decoder stages on devices that all work at once, each device driven by one thread:
//
//   encode:  MicroBatch -> encoder stage 0 -> ... -> EncodeResult
//   step:    StepBatch (+ encoder rows) -> decoder stage 0 -> ... -> head -> StepResult
//
// A device may have a stage of each stack. Jobs queue before each device and are taken in the order
// in which they came; steps before encodes, since sequences under way wait for them, but an encode
// lets only so many steps by. Whoever drives the ring closes it: it makes the next step of a group
// from the last one's result, and keeps at least as many groups of sequences under way as there are
// decoder stages, so that no device waits. Queues have no bound but what the caller has under way.
#ifndef QUINTET_PIPELINE_RING_H_
#define QUINTET_PIPELINE_RING_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/logit_edit.h"
#include "core/micro_batch.h"
#include "core/step_batch.h"
#include "models/decoder.h"
#include "models/encoder.h"
#include "pipeline/failures.h"
#include "pipeline/stage_meter.h"
#include "pipeline/trace.h"

namespace quintet {

// What is to be done with the logits of the selected rows, in this order.
struct LogitRequest {
  bool log_softmax = false;      // before the edits
  std::vector<LogitEdit> edits;  // `row` counts the selected rows
  int64_t top_k = 0;             // candidates of each row wanted; 0: none
  // Single values wanted: of selected row pick_rows[i], column pick_tokens[i].
  std::vector<int32_t> pick_rows;
  std::vector<int32_t> pick_tokens;
  bool picks_log_softmax = false;  // picks are taken after a log_softmax, behind top_k and rows
  bool rows = false;               // all of the logits, as they are after the edits
  bool hidden = false;             // no logits at all: the selected rows of the hidden states
};

struct EncodeJob {
  uint64_t tag = 0;  // the caller's
  MicroBatch batch;
};

// The encoder's output in memory that the host addresses, whatever the devices: Tensor::row()
// works, views may be dropped on any thread.
struct EncodeResult {
  uint64_t tag = 0;
  MicroBatch batch;
  Tensor rows;  // [n_tokens, d_model] float32
};

struct StepJob {
  uint64_t tag = 0;
  StepBatch step;
  // Encoder rows for step.source_slots, one below the other; views of EncodeResult::rows. Every
  // decoder stage gets them, other memory than the host's once each.
  std::vector<Tensor> sources;
  LogitRequest request;
  std::vector<uint64_t> ordinals;  // the records under way in it, for a failure's message
};

struct StepResult {
  uint64_t tag = 0;
  int64_t n_selected = 0;
  std::vector<int32_t> ids;   // [n_selected * top_k], best first
  std::vector<float> values;  // [n_selected * top_k]
  std::vector<float> picks;   // [pick_rows.size()]
  std::vector<float> rows;    // [n_selected, vocab_size or d_model], or empty
};

// One of the two, or neither.
struct RingResult {
  std::unique_ptr<EncodeResult> encode;
  std::unique_ptr<StepResult> step;

  explicit operator bool() const { return encode != nullptr || step != nullptr; }
};

struct RingDevice {
  Device* device = nullptr;               // outlives the ring
  std::unique_ptr<EncoderStage> encoder;  // null: no stage of that stack
  StageRange encoder_range;
  std::unique_ptr<DecoderStage> decoder;
  StageRange decoder_range;
};

struct RingOptions {
  bool lend = true;        // as PipelineOptions::lend
  Trace* trace = nullptr;  // gets one track per device; outlives the ring
};

// submit() and wait() from one thread; abort() and stats() from any.
class Ring {
 public:
  // Throws Error(kUsage) where a device stands twice or has no stage, a stack's ranges do not join
  // up, or there is no decoder. Stages stand in the order of their blocks, whatever the order of
  // the devices. Their caches have been reserved.
  Ring(std::vector<RingDevice> devices, RingOptions options);
  ~Ring();  // aborts what is under way, joins the threads
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  void submit(EncodeJob job);
  void submit(StepJob job);
  // The next job that is finished, in the order of finishing; waits for it. Encodes finish in the
  // order of submit(), steps too. Nothing after abort() and where nothing is under way. When a
  // stage has thrown, throws BatchError with the ordinals of that job, from then on at each call.
  RingResult wait();
  size_t in_flight() const;  // submitted and not yet handed out by wait()
  void abort();              // throws away what is under way; wait() returns soon
  size_t n_encoder_stages() const;
  size_t n_decoder_stages() const;
  // Of each stage in the order of the stacks, encoder first. A device's waiting counts with its
  // decoder stage where it has one.
  std::vector<StageStats> stats() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace quintet

#endif  // QUINTET_PIPELINE_RING_H_
