// Encoder and decoder stages on devices that all work at once, each device driven by one thread:
//
//   encode:  MicroBatch -> encoder stage 0 -> ... -> EncodeResult
//   step:    StepBatch (+ encoder rows) -> decoder stage 0 -> ... -> head -> StepResult
//
// A device may have a stage of each stack. Jobs queue before each device and are taken in the order
// in which they came; steps before encodes, since sequences under way wait for them. Whoever drives
// the ring closes it: it makes the next step of a group from the last one's result, and keeps at
// least as many groups of sequences under way as there are stages, so that no device waits.
#ifndef QUINTET_PIPELINE_RING_H_
#define QUINTET_PIPELINE_RING_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/logit_edit.h"
#include "core/micro_batch.h"
#include "core/step_batch.h"
#include "link/host_buffers.h"
#include "models/decoder.h"
#include "models/encoder.h"
#include "pipeline/pipeline.h"

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

// The encoder's output, kept where the last encoder stage left it until the step that takes it.
struct EncodeResult {
  uint64_t tag = 0;
  MicroBatch batch;
  Tensor rows;  // [n_tokens, d_model] on the last encoder stage's device
};

struct StepJob {
  uint64_t tag = 0;
  StepBatch step;
  // Encoder rows for step.source_slots, one below the other; as EncodeResult::rows.
  std::vector<Tensor> sources;
  LogitRequest request;
};

struct StepResult {
  uint64_t tag = 0;
  int64_t n_selected = 0;
  std::vector<int32_t> ids;   // [n_selected * top_k], best first
  std::vector<float> values;  // [n_selected * top_k]
  std::vector<float> picks;   // [pick_rows.size()]
  std::vector<float> rows;    // [n_selected, vocab_size or d_model], or empty
};

struct RingDevice {
  Device* device = nullptr;               // outlives the ring
  std::unique_ptr<EncoderStage> encoder;  // null: no stage of that stack
  StageRange encoder_range;
  std::unique_ptr<DecoderStage> decoder;
  StageRange decoder_range;
};

struct RingOptions {
  int64_t encoder_d_model = 0;
  int64_t decoder_d_model = 0;
  bool lend = true;        // as PipelineOptions::lend
  Trace* trace = nullptr;  // gets one track per device; outlives the ring
};

// submit() and wait() from one thread; abort() and stats() from any.
class Ring {
 public:
  // Throws Error(kUsage) where a device stands twice or a stack's ranges do not join up. The
  // stages' caches have been reserved.
  Ring(std::vector<RingDevice> devices, RingOptions options);
  ~Ring();  // aborts what is under way, joins the threads
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  void submit(EncodeJob job);
  void submit(StepJob job);
  // The next job that is finished, in the order of finishing; waits for it. Nothing after abort()
  // and where nothing is under way. When a stage has thrown, throws BatchError with the ordinals of
  // that job (a step's: of its prompts), from then on at each call.
  std::optional<std::variant<EncodeResult, StepResult>> wait();
  size_t in_flight() const;
  void abort();
  size_t n_decoder_stages() const;
  std::vector<StageStats> stats() const;  // of each device, encoder and decoder stage apart

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace quintet

#endif  // QUINTET_PIPELINE_RING_H_
