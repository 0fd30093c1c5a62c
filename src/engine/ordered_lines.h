// Where the lines that a job makes of its records wait for those before them, and leave for the
// output in the order of the input, rejections among them. One thread.
#ifndef QUINTET_ENGINE_ORDERED_LINES_H_
#define QUINTET_ENGINE_ORDERED_LINES_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "core/record.h"
#include "engine/ordered_sink.h"
#include "output/writer.h"

namespace quintet {

class OrderedLines {
 public:
  // rows: where the numbers go that a record has beside its lines, or null. on_reject is called of
  // every rejection, in order; may be empty. track: of what is written; outlives this.
  OrderedLines(Output& lines, Output* rows, const TraceTrack& track,
               std::function<void(const Rejection&)> on_reject)
      : lines_(lines), rows_(rows), track_(track), on_reject_(std::move(on_reject)) {}

  // In rising order of ordinals; each is then completed or rejected, once, in any order.
  void announce(const Record& record);
  void complete(uint64_t ordinal, std::string lines);
  void complete(uint64_t ordinal, std::string lines, std::vector<float> rows, int64_t n_rows);
  // failure: it makes the run fail.
  void reject(uint64_t ordinal, std::string reason, bool failure = true);

  std::string id_of(uint64_t ordinal) const;  // of a record still here
  const SinkCounts& counts() const { return counts_; }

 private:
  struct Entry {
    Embedding record;  // its values: the rows
    std::string lines;
    std::string rejected;
    bool failure = false;
    bool ready = false;
  };

  std::deque<Entry>::iterator find(uint64_t ordinal);
  void write_ready();
  void write(const Entry& entry);

  Output& lines_;
  Output* rows_;
  const TraceTrack& track_;
  std::function<void(const Rejection&)> on_reject_;
  std::deque<Entry> entries_;
  SinkCounts counts_;
};

}  // namespace quintet

#endif  // QUINTET_ENGINE_ORDERED_LINES_H_
