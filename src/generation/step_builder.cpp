#include "generation/step_builder.h"

#include <algorithm>
#include <cassert>
#include <span>
#include <utility>

namespace quintet {
namespace {

int32_t slot_of(const std::vector<int32_t>& pages, int32_t key) {
  return pages[static_cast<size_t>(key / kPageTokens)] * kPageTokens + key % kPageTokens;
}

// One table more, and n_rows rows that read its first n_keys keys.
void add_table(PageTable& table, const std::vector<int32_t>& pages, int32_t n_keys,
               int64_t n_rows) {
  const auto number = static_cast<int32_t>(table.begin.size()) - 1;
  table.pages.insert(table.pages.end(), pages.begin(), pages.end());
  table.begin.push_back(static_cast<int32_t>(table.pages.size()));
  table.table.insert(table.table.end(), static_cast<size_t>(n_rows), number);
  table.n_keys.insert(table.n_keys.end(), static_cast<size_t>(n_rows), n_keys);
}

}  // namespace

void StepBuilder::add_prompt(LiveRecord& record) {
  assert(job_.step.tokens.empty());
  const Tensor source = record.begin();
  if (!source.empty()) job_.sources.push_back(source);
  for (int32_t key = 0; key < record.n_source(); ++key) {
    job_.step.source_slots.push_back(slot_of(record.cross_pages(), key));
  }

  MicroBatch& prompts = job_.step.prompts;
  if (prompts.cu_seqlens.empty()) prompts.cu_seqlens = {0};
  const int32_t first = prompts.cu_seqlens.back();
  const int32_t n = record.n_keys();
  prompts.tokens.insert(prompts.tokens.end(), record.prompt().begin(), record.prompt().end());
  for (int32_t key = 0; key < n; ++key) {
    prompts.positions.push_back(key);
    job_.step.slots.push_back(slot_of(record.pages(0), key));
  }
  prompts.cu_seqlens.push_back(first + n);
  prompts.ordinals.push_back(record.ordinal());
  prompts.pool_begin.push_back(first);
  prompts.pool_end.push_back(first + n);
  prompts.max_len = std::max(prompts.max_len, n);
  read_source(record, n);
  job_.step.selected.push_back(first + n - 1);
  ask(record, 1);
}

void StepBuilder::add_rows(LiveRecord& record) {
  StepBatch& step = job_.step;
  const int64_t n_rows = record.n_rows();
  for (size_t row = 0; row < static_cast<size_t>(n_rows); ++row) {
    const LiveRecord::Room room = record.make_room(row);
    if (room.copies) step.copies.push_back(room.copy);
    step.selected.push_back(static_cast<int32_t>(step.n_rows()));
    step.tokens.push_back(record.token(row));
    step.positions.push_back(record.n_keys());
    step.slots.push_back(room.slot);
    add_table(step.self, record.pages(row), record.n_keys() + 1, 1);
  }
  record.count_key();
  read_source(record, n_rows);
  ask(record, n_rows);
}

void StepBuilder::read_source(const LiveRecord& record, int64_t n_rows) {
  if (record.n_source() == 0) return;
  add_table(job_.step.cross, record.cross_pages(), record.n_source(), n_rows);
}

void StepBuilder::ask(LiveRecord& record, int64_t n_rows) {
  const auto first = static_cast<int64_t>(job_.step.selected.size()) - n_rows;
  SearchRequest request = record.search().request();
  for (LogitEdit& edit : request.edits) {
    assert(edit.row >= 0 && edit.row < n_rows);
    edit.row += static_cast<int32_t>(first);
    job_.request.edits.push_back(edit);
  }
  // One config makes all searches, so they cannot differ.
  assert(entries_.empty() || request.log_softmax == job_.request.log_softmax);
  job_.request.log_softmax = request.log_softmax;
  job_.request.top_k = std::max(job_.request.top_k, request.top_k);
  job_.ordinals.push_back(record.ordinal());
  entries_.push_back(
      {.record = &record, .first_row = first, .n_rows = n_rows, .top_k = request.top_k});
}

StepJob StepBuilder::take() { return std::move(job_); }

std::vector<Candidates> candidates_of(const StepEntry& entry, const StepResult& result) {
  const auto stride = static_cast<int64_t>(result.ids.size()) / result.n_selected;
  const auto k = static_cast<size_t>(entry.top_k);
  std::vector<Candidates> rows;
  for (int64_t row = entry.first_row; row < entry.first_row + entry.n_rows; ++row) {
    const auto begin = static_cast<size_t>(row * stride);
    rows.push_back({.ids = std::span(result.ids).subspan(begin, k),
                    .values = std::span(result.values).subspan(begin, k)});
  }
  return rows;
}

}  // namespace quintet
