// One step of a decoder over several sequences: whole prompts laid end to end, then one row for
// each sequence that already stands in the caches. Nothing is padded. Where keys and values lie is
// said in page numbers that mean the same on every stage.
#ifndef QUINTET_CORE_STEP_BATCH_H_
#define QUINTET_CORE_STEP_BATCH_H_

#include <cstdint>
#include <vector>

#include "core/micro_batch.h"

namespace quintet {

// Keys (and values) of a sequence that lie together in a cache. A sequence's key number j is at
// place j % kPageTokens of its page j / kPageTokens. Five pages are one key block of attention.
inline constexpr int32_t kPageTokens = 24;

// Which cached keys each row attends to: its sequence's first n_keys.
struct PageTable {
  std::vector<int32_t> pages;     // of one table after the other
  std::vector<int32_t> begin{0};  // [n_tables + 1], where each table starts in `pages`
  std::vector<int32_t> table;     // [n_rows], the table of each row; beams of one record share one
  std::vector<int32_t> n_keys;    // [n_rows], at least 1; at most kPageTokens * pages of its table
};

struct PageCopy {
  int32_t from = 0;
  int32_t to = 0;
  int32_t n_tokens = kPageTokens;  // the first of the page; what lies behind need not be copied
};

struct StepBatch {
  MicroBatch prompts;              // rows [0, prompts.n_tokens()): attend to each other, causally
  std::vector<int32_t> tokens;     // [n_steps], rows behind the prompts: one token of a sequence,
  std::vector<int32_t> positions;  // [n_steps]   at its position

  // Self-attention's cache: first pages are copied (a beam that leaves its parent's page), then the
  // rows' keys and values are kept in their slots, then the steps attend.
  std::vector<PageCopy> copies;
  std::vector<int32_t> slots;  // [n_rows], page * kPageTokens + place; -1: not kept
  PageTable self;              // of the steps, [n_steps] rows; counts the row's own key

  // Cross-attention's cache (T5): rows of encoder output that come with this step are projected and
  // kept, then all rows attend.
  std::vector<int32_t> source_slots;  // [n_source_rows]
  PageTable cross;                    // of all rows, [n_rows]

  std::vector<int32_t> selected;  // rows whose output is wanted: [n_selected], rising

  int64_t n_steps() const { return static_cast<int64_t>(tokens.size()); }
  int64_t n_rows() const { return prompts.n_tokens() + n_steps(); }
};

}  // namespace quintet

#endif  // QUINTET_CORE_STEP_BATCH_H_
