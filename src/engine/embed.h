// The main job: records in, embeddings on disk.
//
//   reader -> ids checked -> tokenizer -> packer -> pipeline      on a thread of its own
//   pipeline -> ordered sink -> output (spool, then the file)     on the caller's thread
#ifndef QUINTET_ENGINE_EMBED_H_
#define QUINTET_ENGINE_EMBED_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/job_progress.h"
#include "engine/layout.h"
#include "engine/options.h"
#include "engine/ordered_sink.h"
#include "engine/record_encoder.h"
#include "pipeline/pipeline.h"

namespace quintet {

// What the caller wants to hear of while the job runs. All but on_reject are called on the caller's
// thread.
struct EmbedEvents {
  std::function<void(const Layout&)> on_layout;         // before any weight is read
  std::function<void(const JobProgress&)> on_progress;  // after every micro-batch
  std::function<void(const std::string&)> on_note;      // one line for people
  std::function<void(const Rejection&)> on_reject;      // from the reading thread, too
};

struct EmbedResult {
  bool was_complete = false;   // --resume found the finished file of an equal run
  uint64_t records_seen = 0;   // in the input, of this shard
  uint64_t resumed = 0;        // finished by earlier runs
  uint64_t computed = 0;       // records computed in this run
  uint64_t tokens = 0;         //   and their tokens
  SinkCounts counts;           // of this run
  OutputCounts total;          // in the output, earlier runs included
  uint64_t failed_before = 0;  // rejected by earlier runs
  double load_seconds = 0;     // from `started` to the first record
  double seconds = 0;          // from the first record read to the last byte written
  int64_t planned_peak_bytes = 0;
  int64_t measured_peak_bytes = 0;
  std::vector<StageStats> stages;
  EncodingNotes notes;
};

// Runs the job. `stop` may become true at any time (a signal): what is finished is then flushed and
// Error(kInterrupted) thrown. `started`: when the program began, for load_seconds.
EmbedResult run_embed(const Options& options, const EmbedEvents& events,
                      const std::atomic<bool>& stop, std::chrono::steady_clock::time_point started);

// The --stats file.
std::string stats_json(const EmbedResult& result);

}  // namespace quintet

#endif  // QUINTET_ENGINE_EMBED_H_
