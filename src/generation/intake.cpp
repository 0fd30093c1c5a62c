#include "generation/intake.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "batch/packer.h"
#include "quintet/error.h"

namespace quintet {

Intake::Intake(Ring& ring, const GeneratorOptions& options, const Generator::Events& events,
               const std::atomic<bool>& stop)
    : ring_(ring),
      options_(options),
      events_(events),
      stop_(stop),
      encodes_(ring.n_encoder_stages() > 0) {}

void Intake::fill(int64_t free_places) {
  if (waiting_rows_ <= free_places + options_.rows_per_group / 2) {
    std::vector<Sequence> to_encode;
    // Nor are more sources held than the cross caches could take.
    while (!ended_ && !stop_ && waiting_rows_ < free_places + options_.rows_per_group &&
           (waiting_.empty() || waiting_cross_pages_ < options_.pages.cross || !encodes_)) {
      std::optional<GenerationTask> task = events_.next();
      if (task) {
        take_in(std::move(*task), to_encode);
      } else {
        ended_ = true;
      }
    }
    if (!to_encode.empty()) pack(std::move(to_encode));
  }
  submit_encodes();
}

void Intake::take_in(GenerationTask task, std::vector<Sequence>& to_encode) {
  const Needs needs =
      needs_of(task, static_cast<int64_t>(task.source.tokens.size()), options_.max_positions);
  std::string reason = why_refused(task, needs);
  if (!reason.empty() || task.search->max_new_tokens() < 1) {
    GenerationResult result;
    result.ordinal = task.ordinal;
    result.rejected = std::move(reason);
    if (result.rejected.empty()) result.sequences = task.search->results();
    events_.done(std::move(result));
    return;
  }
  if (encodes_) {
    Sequence source = std::move(task.source);
    source.ordinal = task.ordinal;
    source.pool_begin = 0;
    source.pool_end = static_cast<int32_t>(source.tokens.size());
    to_encode.push_back(std::move(source));
  }
  waiting_.push_back(
      {.task = std::move(task), .needs = needs, .ready = !encodes_, .source_rows = {}});
  const Place place = std::prev(waiting_.end());
  if (encodes_) {
    const bool is_new = unready_.emplace(place->task.ordinal, place).second;
    assert(is_new);
    static_cast<void>(is_new);
  } else {
    ready_rows_ += needs.rows;
  }
  waiting_rows_ += needs.rows;
  waiting_cross_pages_ += needs.pages.cross;
}

std::string Intake::why_refused(const GenerationTask& task, const Needs& needs) const {
  const size_t n_prompt = task.prompt.size();
  const size_t n_source = task.source.tokens.size();
  const CachePages& pages = options_.pages;
  if (n_prompt == 0) return "the decoder has no token to begin with";
  if (encodes_ && n_source == 0) return "the encoder has no token to read: text or mask are empty";
  if (options_.max_positions > 0 && static_cast<int64_t>(n_prompt) > options_.max_positions) {
    return fmt::format("the prompt has {} tokens, the model has {} positions", n_prompt,
                       options_.max_positions);
  }
  if (needs.rows > options_.rows_per_group) {
    return fmt::format("{} sequences at once are needed, a step has room for {}", needs.rows,
                       options_.rows_per_group);
  }
  if (needs.pages.self > pages.self) {
    return fmt::format(
        "{} sequences of {} prompt and up to {} new tokens need {} pages of the decoder's cache, "
        "there are {}",
        needs.rows, n_prompt, task.search->max_new_tokens(), needs.pages.self, pages.self);
  }
  if (encodes_ && needs.pages.cross > pages.cross) {
    return fmt::format(
        "{} source tokens need {} pages of the cross-attention's cache, there are {}", n_source,
        needs.pages.cross, pages.cross);
  }
  return {};
}

// Nearly equal micro-batches.
void Intake::pack(std::vector<Sequence> sequences) {
  Packer packer({.tokens_per_batch = options_.encode_tokens_per_batch,
                 .look_ahead_tokens = int64_t{1} << 40});
  for (Sequence& sequence : sequences) packer.push(std::move(sequence));
  packer.finish();
  while (std::optional<MicroBatch> batch = packer.next()) batches_.push_back(std::move(*batch));
}

// One for each stage to work on and one to wait; the others stay here, where stopping is cheap.
void Intake::submit_encodes() {
  const auto most = static_cast<int64_t>(ring_.n_encoder_stages()) + 1;
  for (; !batches_.empty() && n_encoding_ < most; ++n_encoding_) {
    ring_.submit(EncodeJob{.tag = 0, .batch = std::move(batches_.front())});
    batches_.pop_front();
  }
}

void Intake::take(const EncodeResult& encoded) {
  --n_encoding_;
  const MicroBatch& batch = encoded.batch;
  for (size_t s = 0; s < batch.ordinals.size(); ++s) {
    const auto found = unready_.find(batch.ordinals[s]);
    assert(found != unready_.end());
    WaitingRecord& record = *found->second;
    unready_.erase(found);
    const int32_t first = batch.cu_seqlens[s];
    record.source_rows = encoded.rows.rows(first, batch.cu_seqlens[s + 1] - first);
    record.ready = true;
    ready_rows_ += record.needs.rows;
  }
  submit_encodes();
}

WaitingRecord* Intake::first_ready() {
  const auto found = std::find_if(waiting_.begin(), waiting_.end(),
                                  [](const WaitingRecord& record) { return record.ready; });
  return found != waiting_.end() ? &*found : nullptr;
}

void Intake::drop_first_ready() {
  const auto found = std::find_if(waiting_.begin(), waiting_.end(),
                                  [](const WaitingRecord& record) { return record.ready; });
  assert(found != waiting_.end());
  waiting_rows_ -= found->needs.rows;
  ready_rows_ -= found->needs.rows;
  waiting_cross_pages_ -= found->needs.pages.cross;
  waiting_.erase(found);
}

}  // namespace quintet
