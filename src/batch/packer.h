// Sequences to micro-batches: no padding, bounded tokens, bounded look-ahead.
//
// A run of k equal stages over micro-batches costs the sum of their tokens plus k - 1 times the
// largest, so micro-batches are made nearly equal: each takes the oldest sequence and those of the
// next look_ahead_tokens that fill it best. When the end is known, what is left is divided evenly.
#ifndef QUINTET_BATCH_PACKER_H_
#define QUINTET_BATCH_PACKER_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "core/micro_batch.h"

namespace quintet {

// Lays a sequence with at least one token behind those of the micro-batch.
void append_sequence(const Sequence& sequence, MicroBatch& batch);

struct PackerOptions {
  int64_t tokens_per_batch = 512;    // a longer sequence is a micro-batch of its own
  int64_t look_ahead_tokens = 2048;  // see push(); less than tokens_per_batch counts as that
};

// The same sequences in the same order give the same micro-batches, however push() and next() mix.
class Packer {
 public:
  explicit Packer(PackerOptions options);  // throws Error(kUsage) unless both are positive

  // A sequence overtakes another only where it begins less than look_ahead_tokens behind it in the
  // input, one longer than tokens_per_batch being counted as that and never overtaking. So who puts
  // results back in order holds fewer tokens than look_ahead_tokens, and what is in flight.
  // Throws Error(kRecord) where the sequence has no tokens, its positions do not rise from 0 or
  // more, or its pool range is not inside it; the packer is then as before.
  void push(Sequence sequence);
  void finish();  // no more sequences will come
  // The next micro-batch, or nothing: push more (or, after finish(), all is packed). Its sequences
  // lie in the order of the input.
  std::optional<MicroBatch> next();

  // Where next() is drained after each push(): fewer than look_ahead_tokens, counted as in push().
  int64_t waiting_tokens() const { return waiting_tokens_; }

 private:
  struct Waiting {
    Sequence sequence;
    int64_t begin = 0;  // tokens before it in the input, counted as in push()
    int64_t length = 0;
  };

  bool window_is_full() const;
  std::vector<size_t> choose() const;  // places in waiting_, rising
  std::vector<std::vector<size_t>> divide() const;
  MicroBatch build(const std::vector<size_t>& places);
  void drop(const std::vector<size_t>& places);

  PackerOptions options_;
  std::deque<Waiting> waiting_;  // in the order of the input
  int64_t waiting_tokens_ = 0;
  int64_t pushed_tokens_ = 0;
  uint64_t next_number_ = 0;
  bool finished_ = false;
  std::deque<MicroBatch> rest_;  // after finish(): all that is left
};

}  // namespace quintet

#endif  // QUINTET_BATCH_PACKER_H_
