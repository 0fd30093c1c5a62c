// Reads records and feeds the pipeline: ids checked, tokens packed. Everything a record can fail at
// before it is computed is found here.
#ifndef QUINTET_ENGINE_FEEDER_H_
#define QUINTET_ENGINE_FEEDER_H_

#include <xxhash.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "batch/packer.h"
#include "engine/id_book.h"
#include "engine/options.h"
#include "engine/ordered_sink.h"
#include "engine/record_encoder.h"
#include "engine/trace_track.h"
#include "input/reader.h"
#include "output/writer.h"
#include "pipeline/pipeline.h"

namespace quintet {

class Feeder {
 public:
  struct Setup {
    const Options* options;
    const OutputOptions* output_options;
    Reader* reader;
    RecordEncoder* encoder;
    OrderedSink* sink;
    Pipeline* pipeline;
    const std::atomic<bool>* stop;
    uint64_t first_ordinal = 0;                           // records before it are finished
    const std::unordered_set<uint64_t>* rejected_before;  //   and these of them were rejected
    // Not empty: why a record of so many tokens cannot be computed.
    std::function<std::string(int64_t)> why_too_long;
    int64_t tokens_per_batch = 0;
    bool share_equal_sequences = true;
    Trace* trace = nullptr;  // gets a track of what is read, and of waiting for the stages
  };
  explicit Feeder(const Setup& setup);

  // Until the input ends, the pipeline takes no more, or `stop`; then finishes the pipeline, unless
  // stopped.
  void run();

  uint64_t records_seen() const { return records_seen_; }
  uint64_t resumed() const { return resumed_; }
  uint64_t computed() const { return computed_; }
  uint64_t tokens() const { return tokens_; }  // handed to the pipeline
  uint64_t bytes_read() const { return bytes_read_; }
  uint64_t bytes_resumed() const { return bytes_resumed_; }  // up to the last finished record

 private:
  void take(Record& record);
  void pass_over(const Record& record, bool may_be_rejected);
  bool share_earlier(Entry& entry, const EncodedRecord& encoded);
  bool drain();
  static Entry rejected_entry(const Record& record, std::string reason, bool failure);

  Setup setup_;
  TraceTrack track_;
  TraceTrack::Time reading_since_;
  IdBook ids_;
  Packer packer_;
  std::unordered_map<Hash128, uint64_t, TakeFirstWord> sequences_;  // -> the first such record
  std::atomic<uint64_t> records_seen_ = 0;
  std::atomic<uint64_t> resumed_ = 0;
  std::atomic<uint64_t> computed_ = 0;
  std::atomic<uint64_t> tokens_ = 0;
  std::atomic<uint64_t> bytes_read_ = 0;
  std::atomic<uint64_t> bytes_resumed_ = 0;
};

}  // namespace quintet

#endif  // QUINTET_ENGINE_FEEDER_H_
