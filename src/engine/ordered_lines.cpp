#include "engine/ordered_lines.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace quintet {

std::deque<OrderedLines::Entry>::iterator OrderedLines::find(uint64_t ordinal) {
  const auto entry = std::ranges::lower_bound(
      entries_, ordinal, {}, [](const Entry& candidate) { return candidate.record.ordinal; });
  assert(entry != entries_.end() && entry->record.ordinal == ordinal);
  return entry;
}

void OrderedLines::announce(const Record& record) {
  Entry& entry = entries_.emplace_back();
  entry.record.ordinal = record.ordinal;
  entry.record.line = record.line;
  entry.record.id = record.id;
}

void OrderedLines::complete(uint64_t ordinal, std::string lines) {
  complete(ordinal, std::move(lines), {}, 0);
}

void OrderedLines::complete(uint64_t ordinal, std::string lines, std::vector<float> rows,
                            int64_t n_rows) {
  Entry& entry = *find(ordinal);
  entry.lines = std::move(lines);
  entry.record.values = std::move(rows);
  entry.record.n_rows = n_rows;
  entry.ready = true;
  write_ready();
}

void OrderedLines::reject(uint64_t ordinal, std::string reason, bool failure) {
  Entry& entry = *find(ordinal);
  entry.rejected = std::move(reason);
  entry.failure = failure;
  entry.ready = true;
  write_ready();
}

void OrderedLines::write_ready() {
  const TraceTrack::Time begin = track_.now();
  while (!entries_.empty() && entries_.front().ready) {
    write(entries_.front());
    entries_.pop_front();
  }
  track_.add("spool", begin);
}

void OrderedLines::write(const Entry& entry) {
  const Embedding& record = entry.record;
  if (!entry.rejected.empty()) {
    const Rejection rejection{
        .ordinal = record.ordinal, .line = record.line, .id = record.id, .reason = entry.rejected};
    if (record.ordinal >= lines_.next_ordinal()) lines_.reject(rejection);
    if (on_reject_) on_reject_(rejection);
    ++counts_.rejected;
    if (entry.failure) ++counts_.failed;
    return;
  }
  // After a crash one of the two may hold more than the other.
  if (rows_ != nullptr && record.ordinal >= rows_->next_ordinal()) rows_->append(record);
  if (record.ordinal >= lines_.next_ordinal()) lines_.append_lines(record, entry.lines);
  ++counts_.embedded;
}

std::string OrderedLines::id_of(uint64_t ordinal) const {
  for (const Entry& entry : entries_) {
    if (entry.record.ordinal == ordinal) return entry.record.id;
  }
  return "";
}

}  // namespace quintet
