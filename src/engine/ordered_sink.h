// Where results meet their records again: entries are announced in the order of the input, filled
// in as their micro-batches come back, and leave for the output in order. Bounded by what is in
// flight.
#ifndef QUINTET_ENGINE_ORDERED_SINK_H_
#define QUINTET_ENGINE_ORDERED_SINK_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "engine/trace_track.h"
#include "output/writer.h"

namespace quintet {

// A record between reading and writing.
struct Entry {
  Embedding embedding;              // without values until they are there
  std::vector<uint8_t> mask;        // rows of masked ids are put back as zeros, unless dropped
  std::optional<uint64_t> same_as;  // shares the values of this earlier record
  std::string rejected;             // not empty: goes to the rejects
  bool failure = false;             //   and counts as a failure
  bool ready = false;
};

struct SinkCounts {
  uint64_t embedded = 0;  // written in this run
  uint64_t same = 0;      //   of these, with an earlier record's values
  uint64_t rejected = 0;
  uint64_t failed = 0;  // of the rejected, those that make the run fail
};

// Used by the thread that reads and the thread that takes results; both may write.
class OrderedSink {
 public:
  struct Options {
    int64_t d_model = 0;
    bool pooled = false;
    bool drop_masked_rows = false;
    // Of every rejection, in order, on the thread that writes it; may be empty.
    std::function<void(const Rejection&)> on_reject = {};
    Trace* trace = nullptr;  // gets a track of what is written
  };
  OrderedSink(Output& output, Options options)
      : output_(output), options_(std::move(options)), track_(options_.trace, "writer") {}

  // In rising order of ordinals. An entry that is ready leaves at once when it is the oldest.
  void announce(Entry entry);
  // The rows of an announced record: [n_rows, d_model] or, pooled, [d_model].
  void complete(uint64_t ordinal, std::span<const float> rows);
  std::string id_of(uint64_t ordinal) const;  // of an entry still here, for messages
  SinkCounts counts() const;
  const TraceTrack& track() const { return track_; }

 private:
  void write_ready();
  void write(Entry& entry);

  Output& output_;
  Options options_;
  TraceTrack track_;
  mutable std::mutex mutex_;
  std::deque<Entry> entries_;
  std::unordered_set<uint64_t> spoiled_;  // computed, and rejected for what came out
  SinkCounts counts_;
};

}  // namespace quintet

#endif  // QUINTET_ENGINE_ORDERED_SINK_H_
