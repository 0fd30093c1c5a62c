// What generate and score have in common: records are read and their ids checked, finished ones
// passed over, and what a job makes of each leaves as lines in the order of the input.
#ifndef QUINTET_ENGINE_LINE_JOB_H_
#define QUINTET_ENGINE_LINE_JOB_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/record.h"
#include "engine/id_book.h"
#include "engine/job_progress.h"
#include "engine/options.h"
#include "engine/ordered_lines.h"
#include "engine/trace_track.h"
#include "input/reader.h"
#include "output/writer.h"

namespace quintet {

class LineJob {
 public:
  struct Events {
    std::function<void(const JobProgress&)> on_progress = {};
    std::function<void(const std::string&)> on_note = {};  // one line for people
    std::function<void(const Rejection&)> on_reject = {};
    // Whether reject() would be told of a record for what stands in it: asked of records that are
    // not computed by this run.
    std::function<bool(const Record&)> is_impossible = {};
  };
  // `identity`: what the lines depend on, as run_identity() gives it; `width`: of the rows that go
  // to --logits, where that is given.
  LineJob(const Options& options, Events events);

  // Opens the outputs. False: an equal run has finished them already.
  bool open(const std::string& identity, int64_t logits_width);

  // Where the tracks of what is read and written go; null: nowhere. Before next().
  void trace_to(Trace* trace);
  // The next record to be computed, announced to the output; nothing at the end of the input.
  std::optional<Record> next();
  // Of a record that next() gave: it is not computed after all, for what stands in it. So its id is
  // free for the next record that has it.
  void reject(const Record& record, std::string reason, bool failure = true);
  OrderedLines& lines() { return *lines_; }
  const TraceTrack& reader_track() const { return reader_track_; }

  void show_progress(uint64_t tokens, uint64_t records_done);
  void flush();           // what is finished is safe on the disk
  OutputCounts finish();  // builds the output files; throws Error(kUsage) where there was no record
  OutputCounts counts() const { return output_->counts(); }

  InputFormat format() const { return reader_->format(); }
  uint64_t records_seen() const { return records_seen_; }
  uint64_t resumed() const { return resumed_; }
  uint64_t failed_before() const { return rejected_before_.size(); }

 private:
  void check_files() const;
  void pass_over(const Record& record, bool may_be_rejected);

  const Options& options_;
  Events events_;
  std::unique_ptr<Reader> reader_;
  OutputOptions output_options_;
  OutputOptions logits_options_;
  std::unique_ptr<Output> output_;
  std::unique_ptr<Output> logits_;
  std::unique_ptr<IdBook> ids_;
  TraceTrack reader_track_{nullptr, ""};
  TraceTrack writer_track_{nullptr, ""};
  std::unique_ptr<OrderedLines> lines_;
  std::unordered_set<uint64_t> rejected_before_;  // by earlier runs
  uint64_t first_ordinal_ = 0;
  uint64_t records_seen_ = 0;
  uint64_t resumed_ = 0;
  uint64_t bytes_resumed_ = 0;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace quintet

#endif  // QUINTET_ENGINE_LINE_JOB_H_
