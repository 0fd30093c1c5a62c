#include "generation/live_record.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "quintet/error.h"

namespace quintet {

Needs needs_of(const GenerationTask& task, int64_t n_source, int64_t max_positions) {
  const auto prompt_length = static_cast<int64_t>(task.prompt.size());
  int64_t max_new_tokens = task.search->max_new_tokens();
  // The token that is chosen at the last position is not kept.
  if (max_positions > 0)
    max_new_tokens = std::min(max_new_tokens, max_positions - prompt_length + 1);
  const int64_t rows = std::max<int64_t>(task.search->max_rows(), 1);
  return {.rows = rows, .pages = pages_of_record(prompt_length, n_source, rows, max_new_tokens)};
}

std::unique_ptr<LiveRecord> LiveRecord::admit(GenerationTask& task, const Tensor& source_rows,
                                              PagePools& pools, int64_t max_positions) {
  const Needs needs = needs_of(task, source_rows.rows(), max_positions);
  if (!pools.self.reserve(needs.pages.self)) return nullptr;
  if (!pools.cross.reserve(needs.pages.cross)) {
    pools.self.unreserve(needs.pages.self);
    return nullptr;
  }
  return std::unique_ptr<LiveRecord>(
      new LiveRecord(std::move(task), source_rows, pools, max_positions, needs));
}

LiveRecord::LiveRecord(GenerationTask task, Tensor source_rows, PagePools& pools,
                       int64_t max_positions, Needs needs)
    : task_(std::move(task)),
      source_rows_(std::move(source_rows)),
      pools_(pools),
      max_positions_(max_positions),
      streams_(needs.rows == 1),
      reserved_(needs),
      n_source_(static_cast<int32_t>(source_rows_.rows())) {}

LiveRecord::~LiveRecord() {
  for (const auto& pages : rows_) {
    for (const int32_t page : pages) pools_.self.drop(page);
  }
  for (const int32_t page : cross_pages_) pools_.cross.drop(page);
  pools_.self.unreserve(reserved_.pages.self);
  pools_.cross.unreserve(reserved_.pages.cross);
}

Tensor LiveRecord::begin() {
  n_keys_ = static_cast<int32_t>(task_.prompt.size());
  std::vector<int32_t>& pages = rows_.emplace_back();
  for (int32_t kept = 0; kept < n_keys_; kept += kPageTokens) pages.push_back(pools_.self.take());
  for (int32_t kept = 0; kept < n_source_; kept += kPageTokens) {
    cross_pages_.push_back(pools_.cross.take());
  }
  return std::move(source_rows_);
}

LiveRecord::Room LiveRecord::make_room(size_t row) {
  std::vector<int32_t>& pages = rows_[row];
  const int32_t place = n_keys_ % kPageTokens;
  Room room;
  if (place == 0) {
    pages.push_back(pools_.self.take());
  } else if (const int32_t shared = pages.back(); pools_.self.owners(shared) > 1) {
    // The last of its owners to come by keeps it, so a page that is copied is never free, nor the
    // goal of another copy of this step.
    pages.back() = pools_.self.take();
    pools_.self.drop(shared);
    room.copies = true;
    room.copy = {.from = shared, .to = pages.back(), .n_tokens = place};
  }
  room.slot = pages.back() * kPageTokens + place;
  return room;
}

bool LiveRecord::advance(std::span<const Candidates> candidates) {
  assert(static_cast<int64_t>(candidates.size()) == n_rows());
  ++n_steps_;
  std::vector<NextRow> next;
  try {
    next = task_.search->advance(candidates);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kRecord) throw;
    rejected_ = error.what();
  }
  if (next.empty() || (max_positions_ > 0 && n_keys_ >= max_positions_)) return false;
  assert(static_cast<int64_t>(next.size()) <= reserved_.rows);
  fork(next);
  shrink_reservation();
  return true;
}

void LiveRecord::fork(const std::vector<NextRow>& next) {
  tokens_.clear();
  for (const NextRow& row : next) tokens_.push_back(row.token);
  if (rows_.size() == 1 && next.size() == 1) return;
  std::vector<std::vector<int32_t>> rows;
  for (const NextRow& row : next) {
    rows.push_back(rows_[static_cast<size_t>(row.parent)]);
    for (const int32_t page : rows.back()) pools_.self.share(page);
  }
  for (const auto& pages : rows_) {
    for (const int32_t page : pages) pools_.self.drop(page);
  }
  rows_ = std::move(rows);
}

// Samples that have ended leave their places and what they could still have needed.
void LiveRecord::shrink_reservation() {
  if (task_.search->max_rows() >= reserved_.rows) return;
  const Needs needs = needs_of(task_, n_source_, max_positions_);
  pools_.self.unreserve(reserved_.pages.self - needs.pages.self);
  reserved_ = needs;
}

std::vector<int32_t> LiveRecord::last_tokens(bool goes_on) const {
  if (goes_on) return tokens_;
  if (!rejected_.empty()) return {};
  // The search has not said which token ended it.
  const std::vector<Generated> generated = task_.search->results();
  if (generated.empty()) return {};
  const std::vector<int32_t>& ids = generated.front().ids;
  const auto told = std::min(static_cast<int64_t>(ids.size()), n_steps_ - 1);
  return {ids.begin() + told, ids.end()};
}

GenerationResult LiveRecord::result() const {
  GenerationResult result;
  result.ordinal = task_.ordinal;
  result.n_steps = n_steps_;
  result.rejected = rejected_;
  if (rejected_.empty()) result.sequences = task_.search->results();
  return result;
}

}  // namespace quintet
