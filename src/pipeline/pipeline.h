// Stages that all work at once, each with a thread that drives its device, and links between them.
#ifndef QUINTET_PIPELINE_PIPELINE_H_
#define QUINTET_PIPELINE_PIPELINE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/micro_batch.h"
#include "models/encoder.h"

namespace quintet {

struct PipelineStage {
  Device* device = nullptr;  // outlives the pipeline
  std::unique_ptr<EncoderStage> blocks;
  StageRange range;
};

struct PipelineOptions {
  size_t queue_capacity = 1;  // micro-batches waiting before each stage
  // What leaves the last stage: all rows, or one pooled row per sequence.
  std::optional<Pooling> pooling;
  bool normalize = false;
};

// A micro-batch with its results on the host.
struct BatchResult {
  MicroBatch batch;
  // [n_tokens, d_model] after the final norm, or with pooling [n_seqs, d_model]; row-major.
  std::vector<float> rows;
};

struct StageStats {
  std::string device;
  StageRange range;
  double busy_seconds = 0;  // computing, since start
  uint64_t batches = 0;
};

// push() from one thread, pop() from another (or the same, with fewer in flight than fit). FIFO.
class Pipeline {
 public:
  Pipeline(std::vector<PipelineStage> stages, int64_t d_model, PipelineOptions options);
  ~Pipeline();  // aborts what is under way, joins the threads

  bool push(MicroBatch batch);  // waits for room; false after a failure or abort
  void finish();                // no more micro-batches will come
  // The next result in order; nothing when all is done. Throws what a stage threw, with the
  // micro-batch's records named.
  std::optional<BatchResult> pop();
  void abort();
  std::vector<StageStats> stats() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace quintet

#endif  // QUINTET_PIPELINE_PIPELINE_H_
