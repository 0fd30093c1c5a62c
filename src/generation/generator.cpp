#include "generation/generator.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "generation/intake.h"
#include "generation/live_record.h"
#include "generation/step_builder.h"

namespace quintet {
namespace {

// Records that make their steps together.
struct Group {
  std::vector<std::unique_ptr<LiveRecord>> records;
  std::vector<StepEntry> entries;  // of the step under way; none: no step
  int64_t places = 0;              // taken
};

// One call of Generator::run().
class Run {
 public:
  Run(Ring& ring, const GeneratorOptions& options, const Generator::Events& events,
      const std::atomic<bool>& stop)
      : ring_(ring),
        options_(options),
        events_(events),
        stop_(stop),
        pools_(options.pages),
        intake_(ring, options, events, stop),
        groups_(static_cast<size_t>(options.n_groups)) {}

  GeneratorStats run() {
    intake_.fill(free_places());
    submit_steps();
    while (RingResult result = ring_.wait()) {
      if (stop_) continue;  // until nothing is under way
      if (result.encode != nullptr) {
        intake_.take(*result.encode);
      } else {
        advance(groups_[result.step->tag], *result.step);
      }
      // The ring first: its devices work while records are written and read.
      submit_steps();
      deliver();
      intake_.fill(free_places());
      submit_steps();
    }
    return stats_;
  }

 private:
  int64_t taken_places() const {
    int64_t taken = 0;
    for (const Group& group : groups_) taken += group.places;
    return taken;
  }
  int64_t free_places() const {
    return options_.n_groups * options_.rows_per_group - taken_places();
  }

  void submit_steps() {
    for (size_t g = 0; g < groups_.size() && !stop_; ++g) {
      if (groups_[g].entries.empty()) submit_step(g);
    }
  }
  void submit_step(size_t g);
  bool waits_for_encodes(const Group& group) const;
  int64_t share() const;
  void admit(Group& group);
  void advance(Group& group, const StepResult& result);
  void deliver();

  Ring& ring_;
  const GeneratorOptions& options_;
  const Generator::Events& events_;
  const std::atomic<bool>& stop_;
  PagePools pools_;
  Intake intake_;
  std::vector<Group> groups_;
  std::vector<GenerationResult> finished_;
  GeneratorStats stats_;
};

void Run::submit_step(size_t g) {
  Group& group = groups_[g];
  if (waits_for_encodes(group)) return;
  admit(group);
  StepBuilder builder;
  for (const auto& record : group.records) {
    if (record->started()) continue;
    stats_.prompt_tokens += record->prompt().size();
    builder.add_prompt(*record);
  }
  const size_t n_prompts = builder.entries().size();
  // Records under way stand before those just admitted.
  for (size_t i = 0; i + n_prompts < group.records.size(); ++i) {
    builder.add_rows(*group.records[i]);
  }
  if (builder.empty()) return;
  group.entries = builder.entries();
  StepJob job = builder.take();
  job.tag = g;
  ring_.submit(std::move(job));
  ++stats_.steps;
}

// A group that stands empty waits until it can begin with all of its places filled.
bool Run::waits_for_encodes(const Group& group) const {
  return group.records.empty() && intake_.is_encoding() && intake_.ready_rows() < share();
}

// Rows that each group should have, so that all have as much to do.
int64_t Run::share() const {
  const int64_t rows = taken_places() + intake_.waiting_rows();
  return std::min(options_.rows_per_group, (rows + options_.n_groups - 1) / options_.n_groups);
}

void Run::admit(Group& group) {
  int64_t prompt_tokens = 0;
  int64_t source_tokens = 0;
  while (WaitingRecord* const waiting = intake_.first_ready()) {
    if (group.places >= share() || group.places + waiting->needs.rows > options_.rows_per_group) {
      break;
    }
    const bool is_first = prompt_tokens == 0;
    prompt_tokens += static_cast<int64_t>(waiting->task.prompt.size());
    source_tokens += waiting->source_rows.rows();
    if (!is_first && (prompt_tokens > options_.prompt_tokens_per_step ||
                      source_tokens > options_.source_tokens_per_step)) {
      break;
    }
    std::unique_ptr<LiveRecord> record =
        LiveRecord::admit(waiting->task, waiting->source_rows, pools_, options_.max_positions);
    if (record == nullptr) break;
    intake_.drop_first_ready();
    group.places += record->places();
    group.records.push_back(std::move(record));
  }
}

void Run::advance(Group& group, const StepResult& result) {
  for (const StepEntry& entry : std::exchange(group.entries, {})) {
    LiveRecord& record = *entry.record;
    stats_.new_tokens += static_cast<uint64_t>(entry.n_rows);
    const bool goes_on = record.advance(candidates_of(entry, result));
    if (events_.token && record.streams()) {
      for (const int32_t token : record.last_tokens(goes_on)) {
        events_.token(record.ordinal(), token);
      }
    }
    if (!goes_on) {
      finished_.push_back(record.result());
      if (finished_.back().rejected.empty()) ++stats_.records;
      const auto is_it = [&](const auto& other) { return other.get() == &record; };
      group.records.erase(std::find_if(group.records.begin(), group.records.end(), is_it));
    }
  }
  group.places = 0;
  for (const auto& record : group.records) group.places += record->places();
}

void Run::deliver() {
  for (GenerationResult& result : std::exchange(finished_, {})) events_.done(std::move(result));
}

}  // namespace

Generator::Generator(Ring& ring, const GeneratorOptions& options) : ring_(ring), options_(options) {
  const auto n_stages = static_cast<int64_t>(ring.n_decoder_stages());
  if (options.n_groups < n_stages) {
    fail(ErrorKind::kUsage, "{} groups over {} decoder stages; each stage needs one to work on",
         options.n_groups, n_stages);
  }
  if (options.rows_per_group < 1 || options.pages.self < 1) {
    fail(ErrorKind::kUsage, "{} rows in a group, {} pages of the cache; at least one is expected",
         options.rows_per_group, options.pages.self);
  }
}

GeneratorStats Generator::run(const Events& events, const std::atomic<bool>& stop) {
  return Run(ring_, options_, events, stop).run();
}

}  // namespace quintet
