#include "engine/ordered_sink.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "engine/sequence.h"

namespace quintet {
namespace {

auto place_of(auto& entries, uint64_t ordinal) {
  return std::lower_bound(
      entries.begin(), entries.end(), ordinal,
      [](const Entry& entry, uint64_t number) { return entry.embedding.ordinal < number; });
}

}  // namespace

void OrderedSink::announce(Entry entry) {
  const std::scoped_lock lock(mutex_);
  entries_.push_back(std::move(entry));
  write_ready();
}

void OrderedSink::complete(uint64_t ordinal, std::span<const float> rows) {
  const std::scoped_lock lock(mutex_);
  const auto entry = place_of(entries_, ordinal);
  assert(entry != entries_.end() && entry->embedding.ordinal == ordinal);
  const auto width = static_cast<size_t>(options_.d_model);
  const bool unmask = !options_.pooled && !options_.drop_masked_rows && !entry->mask.empty();
  entry->embedding.values =
      unmask ? unmask_rows(rows, entry->mask, width) : std::vector<float>(rows.begin(), rows.end());
  entry->embedding.n_rows =
      options_.pooled ? 1 : static_cast<int64_t>(entry->embedding.values.size() / width);
  if (!std::all_of(rows.begin(), rows.end(), [](float value) { return std::isfinite(value); })) {
    entry->rejected = "the model gives NaN or Inf for it; weights kept in a wider --dtype may help";
    entry->failure = true;
    spoiled_.insert(ordinal);
  }
  entry->ready = true;
  write_ready();
}

void OrderedSink::write_ready() {
  const TraceTrack::Time begin = track_.now();
  while (!entries_.empty() && entries_.front().ready) {
    write(entries_.front());
    entries_.pop_front();
  }
  track_.add("spool", begin);
}

void OrderedSink::write(Entry& entry) {
  const Embedding& embedding = entry.embedding;
  if (entry.same_as && spoiled_.contains(*entry.same_as)) {
    entry.rejected = "the model gives NaN or Inf for it";
    entry.failure = true;
  }
  if (!entry.rejected.empty()) {
    const Rejection rejection{.ordinal = embedding.ordinal,
                              .line = embedding.line,
                              .id = embedding.id,
                              .reason = entry.rejected};
    output_.reject(rejection);
    if (options_.on_reject) options_.on_reject(rejection);
    ++counts_.rejected;
    if (entry.failure) ++counts_.failed;
    return;
  }
  if (entry.same_as) {
    output_.append_same(embedding, *entry.same_as);
    ++counts_.same;
  } else {
    output_.append(embedding);
  }
  ++counts_.embedded;
}

std::string OrderedSink::id_of(uint64_t ordinal) const {
  const std::scoped_lock lock(mutex_);
  const auto entry = place_of(entries_, ordinal);
  return entry != entries_.end() && entry->embedding.ordinal == ordinal ? entry->embedding.id : "";
}

SinkCounts OrderedSink::counts() const {
  const std::scoped_lock lock(mutex_);
  return counts_;
}

}  // namespace quintet
