#include "engine/forward_batch.h"

#include <numeric>
#include <utility>

#include "batch/packer.h"
#include "core/step_batch.h"

namespace quintet {

int64_t ForwardItem::cross_pages() const {
  return (static_cast<int64_t>(source.tokens.size()) + kPageTokens - 1) / kPageTokens;
}

void ForwardBatch::add(ForwardItem item) {
  n_source_tokens_ += static_cast<int64_t>(item.source.tokens.size());
  n_tokens_ += static_cast<int64_t>(item.decoder.tokens.size());
  cross_pages_ += item.cross_pages();
  items_.push_back(std::move(item));
}

EncodeJob ForwardBatch::encode_job(uint64_t tag) const {
  EncodeJob job{.tag = tag, .batch = {}};
  for (const ForwardItem& item : items_) append_sequence(item.source, job.batch);
  return job;
}

// Each record's source lies in pages of its own; its decoder's rows all see the whole of it.
void ForwardBatch::add_cross(int32_t page, StepBatch& step) const {
  for (size_t i = 0; i < items_.size(); ++i) {
    const auto n_source = static_cast<int32_t>(items_[i].source.tokens.size());
    for (int32_t token = 0; token < n_source; ++token) {
      step.source_slots.push_back(page * kPageTokens + token);
    }
    for (int64_t n = items_[i].cross_pages(); n > 0; --n) step.cross.pages.push_back(page++);
    step.cross.begin.push_back(static_cast<int32_t>(step.cross.pages.size()));
    const size_t n_rows = items_[i].decoder.tokens.size();
    step.cross.table.insert(step.cross.table.end(), n_rows, static_cast<int32_t>(i));
    step.cross.n_keys.insert(step.cross.n_keys.end(), n_rows, n_source);
  }
}

StepJob ForwardBatch::step_job(uint64_t tag, std::vector<Tensor> sources,
                               int32_t first_page) const {
  StepJob job;
  job.tag = tag;
  for (const ForwardItem& item : items_) append_sequence(item.decoder, job.step.prompts);
  job.step.slots.assign(static_cast<size_t>(n_tokens_), -1);
  if (!sources.empty()) add_cross(first_page, job.step);
  job.sources = std::move(sources);
  job.step.selected.resize(static_cast<size_t>(n_tokens_));
  std::iota(job.step.selected.begin(), job.step.selected.end(), 0);
  job.ordinals = job.step.prompts.ordinals;
  return job;
}

}  // namespace quintet
