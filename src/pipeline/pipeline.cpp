#include "pipeline/pipeline.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "core/error.h"
#include "pipeline/stage.h"

namespace quintet {

// Owns the stages and what they share. Queue i leads into stage i, the results lead out.
struct Pipeline::Impl {
  Impl(std::vector<PipelineStage> parts, int64_t d_model, const PipelineOptions& options)
      : shared(options, d_model) {
    for (PipelineStage& part : parts) stages.emplace_back(std::move(part), stages.size(), shared);
    for (size_t i = 0; i + 1 < stages.size(); ++i) stages[i].connect(stages[i + 1]);
  }
  ~Impl() {
    abort();
    for (Stage& stage : stages) stage.join();  // all, before the first is destroyed
  }

  void abort() {
    shared.aborted = true;
    for (Stage& stage : stages) stage.input().abort();
    shared.results.abort();
    shared.end();
  }

  StageShared shared;
  std::deque<Stage> stages;
};

Pipeline::Pipeline(std::vector<PipelineStage> stages, int64_t d_model, PipelineOptions options) {
  if (stages.empty()) fail(ErrorKind::kUsage, "a pipeline needs at least one stage");
  if (options.queue_capacity < 1) fail(ErrorKind::kUsage, "a queue of capacity 0 lets nothing by");
  for (auto stage = stages.begin(); stage != stages.end(); ++stage) {
    const auto same = [&](const PipelineStage& other) { return other.device == stage->device; };
    if (std::any_of(stages.begin(), stage, same)) {
      fail(ErrorKind::kUsage, "{}: two stages on one device; give it one contiguous run of blocks",
           stage->device->name());
    }
  }
  impl_ = std::make_unique<Impl>(std::move(stages), d_model, options);
  for (Stage& stage : impl_->stages) stage.start();
}

Pipeline::~Pipeline() = default;

bool Pipeline::push(MicroBatch batch) {
  if (batch.n_tokens() == 0) fail(ErrorKind::kUsage, "a micro-batch without tokens");
  BatchParcel parcel;
  parcel.batch = std::move(batch);
  return impl_->stages.front().put(std::move(parcel));
}

void Pipeline::finish() { impl_->stages.front().end_of_input(); }

std::optional<BatchResult> Pipeline::pop() {
  std::optional<BatchResult> result = impl_->shared.results.pop();
  if (result) {
    impl_->stages.back().wake();
  } else if (!impl_->shared.aborted) {
    impl_->shared.failures.raise();
  }
  return result;
}

void Pipeline::abort() { impl_->abort(); }

std::vector<StageStats> Pipeline::stats() const {
  std::vector<StageStats> stats;
  for (const Stage& stage : impl_->stages) stats.push_back(stage.stats());
  return stats;
}

}  // namespace quintet
