#include "engine/feeder.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace quintet {
namespace {

// Equal sequences are remembered up to this many (48 bytes each), the first ones of the input.
constexpr size_t kRememberedSequences = size_t{1} << 22;

Hash128 hash_of(const EncodedRecord& encoded) {
  const auto add = [](XXH3_state_t* state, const auto& values) {
    const uint64_t n = values.size();
    XXH3_128bits_update(state, &n, sizeof(n));
    XXH3_128bits_update(state, values.data(), n * sizeof(values[0]));
  };
  const Sequence& sequence = encoded.sequence;
  XXH3_state_t* state = XXH3_createState();
  XXH3_128bits_reset(state);
  add(state, sequence.tokens);
  add(state, sequence.positions);
  add(state, std::array{sequence.pool_begin, sequence.pool_end});
  add(state, encoded.mask);
  const XXH128_hash_t hash = XXH3_128bits_digest(state);
  XXH3_freeState(state);
  return {hash.low64, hash.high64};
}

}  // namespace

Feeder::Feeder(const Setup& setup)
    : setup_(setup),
      track_(setup.trace, "reader"),
      ids_(*setup.output_options, setup.options->on_duplicate),
      packer_({.tokens_per_batch = setup.tokens_per_batch,
               .look_ahead_tokens = 4 * setup.tokens_per_batch}) {}

void Feeder::run() {
  Record record;
  reading_since_ = track_.now();
  while (!setup_.stop->load() && setup_.reader->next(record)) {
    bytes_read_ = setup_.reader->bytes_read();
    take(record);
    if (!drain()) return;
  }
  if (setup_.stop->load()) return;
  packer_.finish();
  if (drain()) setup_.pipeline->finish();
}

bool Feeder::drain() {
  while (auto batch = packer_.next()) {
    track_.add("read", reading_since_, batch->n_tokens());
    const TraceTrack::Time ready = track_.now();
    if (!setup_.pipeline->push(std::move(*batch))) return false;
    track_.add("waiting", ready);
    reading_since_ = track_.now();
  }
  return true;
}

Entry Feeder::rejected_entry(const Record& record, std::string reason, bool failure) {
  Entry entry;
  entry.embedding.ordinal = record.ordinal;
  entry.embedding.line = record.line;
  entry.embedding.id = record.id;
  entry.rejected = std::move(reason);
  entry.failure = failure;
  entry.ready = true;
  return entry;
}

// Another shard's record, or one that is finished: what it did to the ids is all that counts.
void Feeder::pass_over(const Record& record, bool may_be_rejected) {
  if (!may_be_rejected) return;
  const EncodingNotes notes = setup_.encoder->notes();
  if (!setup_.encoder->encode(record).rejected.empty()) ids_.release(record.id);
  setup_.encoder->forget_since(notes);
}

// Ids are checked over the whole input, other shards and finished records included: which of two
// equal ids is the second one does not depend on how the work is cut.
void Feeder::take(Record& record) {
  const Options& options = *setup_.options;
  std::string problem = record.rejected;
  bool failure = !(record.empty && options.skip_empty);
  if (problem.empty()) problem = ids_.take(record.id, failure);
  if (!is_of_shard(options, record.ordinal)) return pass_over(record, problem.empty());
  ++records_seen_;
  if (record.ordinal < setup_.first_ordinal) {
    ++resumed_;
    bytes_resumed_ = bytes_read_.load();
    return pass_over(record, problem.empty() && setup_.rejected_before->contains(record.ordinal));
  }
  if (!problem.empty()) {
    setup_.sink->announce(rejected_entry(record, std::move(problem), failure));
    return;
  }
  EncodedRecord encoded = setup_.encoder->encode(record);
  const auto n_tokens = static_cast<int64_t>(encoded.sequence.tokens.size());
  if (encoded.rejected.empty()) {  // the id stays taken: another machine may have room for it
    encoded.rejected = setup_.why_too_long(n_tokens);
  } else {
    ids_.release(record.id);
  }
  if (!encoded.rejected.empty()) {
    setup_.sink->announce(rejected_entry(record, std::move(encoded.rejected),
                                         !(encoded.empty && options.skip_empty)));
    return;
  }
  Entry entry;
  Embedding& embedding = entry.embedding;
  embedding.ordinal = record.ordinal;
  embedding.line = record.line;
  embedding.id = record.id;
  embedding.sequence = record.has_ids ? sequence_of_ids(record.input_ids, record.attention_mask)
                                      : std::move(record.text);
  embedding.embedded = std::move(encoded.residues);
  entry.mask = encoded.mask;
  if (share_earlier(entry, encoded)) {
    setup_.sink->announce(std::move(entry));
    return;
  }
  setup_.sink->announce(std::move(entry));
  if (n_tokens == 0) {  // masked as a whole: rows of zeros, or a pooled vector of zeros
    const std::vector<float> zeros(
        options.pool ? static_cast<size_t>(setup_.output_options->d_model) : 0);
    setup_.sink->complete(record.ordinal, zeros);
    return;
  }
  ++computed_;
  tokens_ += static_cast<uint64_t>(n_tokens);
  packer_.push(std::move(encoded.sequence));
}

bool Feeder::share_earlier(Entry& entry, const EncodedRecord& encoded) {
  if (!setup_.share_equal_sequences || encoded.sequence.tokens.empty()) return false;
  const Hash128 hash = hash_of(encoded);
  const auto known = sequences_.find(hash);
  if (known == sequences_.end()) {
    if (sequences_.size() < kRememberedSequences) {
      sequences_.emplace(hash, entry.embedding.ordinal);
    }
    return false;
  }
  entry.same_as = known->second;
  entry.ready = true;
  return true;
}

}  // namespace quintet
