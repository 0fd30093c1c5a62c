// The job of `quintet generate`: records in, generated tokens and text out, a line for each
// returned sequence.
//
//   reader -> ids checked -> tokenizer -> search -> generator (groups on the ring) -> lines, in
//   order
#ifndef QUINTET_ENGINE_GENERATE_H_
#define QUINTET_ENGINE_GENERATE_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/generation_layout.h"
#include "engine/line_job.h"
#include "engine/options.h"
#include "engine/record_encoder.h"
#include "pipeline/ring.h"

namespace quintet {

struct GenerateEvents : LineJob::Events {
  std::function<void(const GenerationLayout&)> on_layout = {};  // before any weight is read
  std::function<void(const std::string&)> on_text = {};         // of --stream, as it comes
};

struct LineJobResult {
  bool was_complete = false;  // --resume found the finished file of an equal run
  uint64_t records_seen = 0;
  uint64_t resumed = 0;        // finished by earlier runs
  uint64_t failed_before = 0;  // rejected by earlier runs
  uint64_t prompt_tokens = 0;  // read by either stack
  uint64_t new_tokens = 0;     // generated, over all sequences; score: scored
  SinkCounts counts;           // of this run
  OutputCounts total;          // in the output, earlier runs included
  double load_seconds = 0;     // from `started` to the first record
  double seconds = 0;          // from the first record read to the last byte written
  int64_t planned_peak_bytes = 0;
  int64_t measured_peak_bytes = 0;
  std::vector<StageStats> stages;
  EncodingNotes notes;
};

// Runs the job. `stop` may become true at any time (a signal): what is finished is then flushed and
// Error(kInterrupted) thrown.
LineJobResult run_generate(const Options& options, const GenerateEvents& events,
                           const std::atomic<bool>& stop,
                           std::chrono::steady_clock::time_point started);

// The --stats file.
std::string stats_json(const LineJobResult& result);

}  // namespace quintet

#endif  // QUINTET_ENGINE_GENERATE_H_
