#include "batch/packer.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include "core/error.h"

namespace quintet {
namespace {

// Sequences that best_subset() weighs against each other; with more, the oldest are taken first.
constexpr size_t kMaxCandidates = 64;

// A set of the numbers 0 .. limit.
class SmallSet {
 public:
  explicit SmallSet(int64_t limit) : limit_(limit), words_(static_cast<size_t>(limit) / 64 + 1) {}

  void insert(int64_t i) { words_[static_cast<size_t>(i) / 64] |= uint64_t{1} << (i % 64); }
  bool contains(int64_t i) const {
    return i >= 0 && i <= limit_ && (words_[static_cast<size_t>(i) / 64] >> (i % 64) & 1) != 0;
  }
  int64_t largest() const {
    int64_t i = limit_;
    while (i > 0 && !contains(i)) --i;
    return i;
  }
  // Adds i + shift for every i of the set.
  void add_shifted(int64_t shift) {
    const size_t words = static_cast<size_t>(shift) / 64;
    const int bits = static_cast<int>(shift % 64);
    for (size_t w = words_.size(); w-- > words;) {
      uint64_t moved = words_[w - words] << bits;
      if (bits != 0 && w > words) moved |= words_[w - words - 1] >> (64 - bits);
      words_[w] |= moved;
    }
  }

 private:
  int64_t limit_;
  std::vector<uint64_t> words_;
};

// Which of `lengths` add up to the most that is not above `room`; of several such choices the one
// that takes the earliest.
std::vector<size_t> best_subset(const std::vector<int64_t>& lengths, int64_t room) {
  std::vector<SmallSet> sums(lengths.size() + 1, SmallSet(room));  // [i]: of lengths[i ...]
  sums.back().insert(0);
  for (size_t i = lengths.size(); i-- > 0;) {
    sums[i] = sums[i + 1];
    sums[i].add_shifted(lengths[i]);
  }
  std::vector<size_t> chosen;
  int64_t left = sums.front().largest();
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (!sums[i + 1].contains(left - lengths[i])) continue;
    chosen.push_back(i);
    left -= lengths[i];
  }
  return chosen;
}

// Spreads `lengths` over n bins, each in turn, longest first, to the emptiest. Gives the bin of
// each length and the fullest bin's sum.
std::pair<std::vector<size_t>, int64_t> spread(const std::vector<int64_t>& lengths, size_t n) {
  std::vector<size_t> order(lengths.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return lengths[a] > lengths[b]; });
  std::vector<size_t> bin_of(lengths.size());
  std::vector<int64_t> sums(n);
  for (const size_t i : order) {
    const auto emptiest = std::min_element(sums.begin(), sums.end());
    bin_of[i] = static_cast<size_t>(emptiest - sums.begin());
    *emptiest += lengths[i];
  }
  return {bin_of, *std::max_element(sums.begin(), sums.end())};
}

void check(const Sequence& sequence) {
  const size_t n = sequence.tokens.size();
  if (n == 0) fail(ErrorKind::kRecord, "record {}: no tokens", sequence.ordinal);
  if (n >= static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
    fail(ErrorKind::kRecord, "record {}: {} tokens, at most {} fit", sequence.ordinal, n,
         std::numeric_limits<int32_t>::max() - 1);
  }
  const auto& positions = sequence.positions;
  if (!positions.empty() && positions.size() != n) {
    fail(ErrorKind::kRecord, "record {}: {} tokens, {} positions", sequence.ordinal, n,
         positions.size());
  }
  int32_t least = 0;
  for (const int32_t position : positions) {
    if (position < least || position == std::numeric_limits<int32_t>::max()) {
      fail(ErrorKind::kRecord, "record {}: position {} where at least {} is expected",
           sequence.ordinal, position, least);
    }
    least = position + 1;
  }
  if (sequence.pool_begin < 0 || sequence.pool_begin > sequence.pool_end ||
      static_cast<size_t>(sequence.pool_end) > n) {
    fail(ErrorKind::kRecord, "record {}: rows [{}, {}) of {} tokens", sequence.ordinal,
         sequence.pool_begin, sequence.pool_end, n);
  }
}

}  // namespace

void append_sequence(const Sequence& sequence, MicroBatch& batch) {
  if (batch.cu_seqlens.empty()) batch.cu_seqlens.push_back(0);
  const auto first_row = static_cast<int32_t>(batch.tokens.size());
  const auto n = static_cast<int32_t>(sequence.tokens.size());
  batch.tokens.insert(batch.tokens.end(), sequence.tokens.begin(), sequence.tokens.end());
  if (sequence.positions.empty()) {
    batch.positions.resize(batch.tokens.size());
    std::iota(batch.positions.begin() + first_row, batch.positions.end(), 0);
  } else {
    batch.positions.insert(batch.positions.end(), sequence.positions.begin(),
                           sequence.positions.end());
  }
  batch.max_len = std::max(batch.max_len, batch.positions.back() + 1);
  batch.cu_seqlens.push_back(first_row + n);
  batch.ordinals.push_back(sequence.ordinal);
  batch.pool_begin.push_back(first_row + sequence.pool_begin);
  batch.pool_end.push_back(first_row + sequence.pool_end);
}

Packer::Packer(PackerOptions options) : options_(options) {
  constexpr int64_t kMost = int64_t{1} << 30;
  if (options.tokens_per_batch < 1 || options.tokens_per_batch > kMost) {
    fail(ErrorKind::kUsage, "tokens per batch: {}, expected 1 to {}", options.tokens_per_batch,
         kMost);
  }
  if (options.look_ahead_tokens < 1) {
    fail(ErrorKind::kUsage, "look-ahead of {} tokens, expected at least 1",
         options.look_ahead_tokens);
  }
  options_.look_ahead_tokens = std::max(options.look_ahead_tokens, options.tokens_per_batch);
}

void Packer::push(Sequence sequence) {
  check(sequence);
  const auto n = static_cast<int64_t>(sequence.tokens.size());
  waiting_.push_back({std::move(sequence), pushed_tokens_, n});
  pushed_tokens_ += std::min(n, options_.tokens_per_batch);
  waiting_tokens_ += n;
}

void Packer::finish() { finished_ = true; }

std::optional<MicroBatch> Packer::next() {
  if (rest_.empty() && finished_ && !waiting_.empty() && !window_is_full()) {
    for (const auto& places : divide()) rest_.push_back(build(places));
    waiting_.clear();
  }
  std::optional<MicroBatch> batch;
  if (!rest_.empty()) {
    batch = std::move(rest_.front());
    rest_.pop_front();
  } else if (window_is_full()) {
    const std::vector<size_t> places = choose();
    batch = build(places);
    drop(places);
  }
  if (batch) waiting_tokens_ -= batch->n_tokens();
  return batch;
}

// All that the oldest sequence may be packed with has been pushed.
bool Packer::window_is_full() const {
  return !waiting_.empty() && pushed_tokens_ - waiting_.front().begin >= options_.look_ahead_tokens;
}

std::vector<size_t> Packer::choose() const {
  int64_t room = options_.tokens_per_batch - waiting_.front().length;
  std::vector<size_t> places;  // of those that might be taken
  std::vector<int64_t> lengths;
  const int64_t window_end = waiting_.front().begin + options_.look_ahead_tokens;
  for (size_t i = 1; i < waiting_.size() && waiting_[i].begin < window_end; ++i) {
    if (waiting_[i].length > room) continue;
    places.push_back(i);
    lengths.push_back(waiting_[i].length);
  }

  std::vector<size_t> chosen = {0};
  size_t first = 0;
  size_t last = std::min(kMaxCandidates, lengths.size());
  int64_t sum =
      std::accumulate(lengths.begin(), lengths.begin() + static_cast<int64_t>(last), int64_t{0});
  while (first < last && sum < room) {
    chosen.push_back(places[first]);
    room -= lengths[first];
    sum -= lengths[first++];
    if (last < lengths.size()) sum += lengths[last++];
  }
  if (first == last || room <= 0) return chosen;
  const std::vector<int64_t> candidates(lengths.begin() + static_cast<int64_t>(first),
                                        lengths.begin() + static_cast<int64_t>(last));
  for (const size_t i : best_subset(candidates, room)) chosen.push_back(places[first + i]);
  return chosen;
}

// All that waits, as few micro-batches as the budget allows and as even as the lengths allow, in
// the order of their first sequences.
std::vector<std::vector<size_t>> Packer::divide() const {
  std::vector<std::vector<size_t>> batches;
  std::vector<size_t> places;
  std::vector<int64_t> lengths;
  for (size_t i = 0; i < waiting_.size(); ++i) {
    if (waiting_[i].length >= options_.tokens_per_batch) {
      batches.push_back({i});
      continue;
    }
    places.push_back(i);
    lengths.push_back(waiting_[i].length);
  }
  if (!lengths.empty()) {
    const int64_t total = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
    auto n =
        static_cast<size_t>((total + options_.tokens_per_batch - 1) / options_.tokens_per_batch);
    auto [bin_of, fullest] = spread(lengths, n);
    while (fullest > options_.tokens_per_batch) std::tie(bin_of, fullest) = spread(lengths, ++n);
    const size_t first_bin = batches.size();
    batches.resize(first_bin + n);
    for (size_t i = 0; i < places.size(); ++i) batches[first_bin + bin_of[i]].push_back(places[i]);
  }
  std::sort(batches.begin(), batches.end());
  return batches;
}

MicroBatch Packer::build(const std::vector<size_t>& places) {
  MicroBatch batch;
  batch.number = next_number_++;
  size_t n_tokens = 0;
  for (const size_t i : places) n_tokens += waiting_[i].sequence.tokens.size();
  batch.tokens.reserve(n_tokens);
  batch.positions.reserve(n_tokens);
  for (const size_t i : places) append_sequence(waiting_[i].sequence, batch);
  return batch;
}

void Packer::drop(const std::vector<size_t>& places) {
  auto next = places.begin();
  size_t kept = 0;
  for (size_t i = 0; i < waiting_.size(); ++i) {
    if (next != places.end() && *next == i) {
      ++next;
      continue;
    }
    if (kept != i) waiting_[kept] = std::move(waiting_[i]);
    ++kept;
  }
  waiting_.resize(kept);
}

}  // namespace quintet
