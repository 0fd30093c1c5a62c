// Lays the rows of several records out as one step: prompts first, then the rows under way. Private
// to the generator.
#ifndef QUINTET_GENERATION_STEP_BUILDER_H_
#define QUINTET_GENERATION_STEP_BUILDER_H_

#include <cstdint>
#include <vector>

#include "generation/live_record.h"
#include "pipeline/ring.h"

namespace quintet {

// Where a record's rows stand in a step's result.
struct StepEntry {
  LiveRecord* record = nullptr;
  int64_t first_row = 0;  // of the selected ones
  int64_t n_rows = 0;
  int64_t top_k = 0;  // that its search asked for; the step's may be more
};

class StepBuilder {
 public:
  void add_prompt(LiveRecord& record);  // all of these before the first add_rows()
  void add_rows(LiveRecord& record);

  bool empty() const { return entries_.empty(); }
  const std::vector<StepEntry>& entries() const { return entries_; }
  StepJob take();

 private:
  void read_source(const LiveRecord& record, int64_t n_rows);
  void ask(LiveRecord& record, int64_t n_rows);

  StepJob job_;
  std::vector<StepEntry> entries_;
};

// The candidates of an entry's rows, as its search asked for them.
std::vector<Candidates> candidates_of(const StepEntry& entry, const StepResult& result);

}  // namespace quintet

#endif  // QUINTET_GENERATION_STEP_BUILDER_H_
