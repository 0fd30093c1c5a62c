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

struct PackerOptions {
  int64_t tokens_per_batch = 512;    // a longer sequence is a micro-batch of its own
  int64_t look_ahead_tokens = 2048;  // see push(); less than tokens_per_batch counts as that
};

// The same sequences in the same order give the same micro-batches, whenever next() is called as
// long as it is called until it gives nothing before each push(), or never before finish().
class Packer {
 public:
  explicit Packer(PackerOptions options);  // throws Error(kUsage) unless both are positive

  // A sequence overtakes another only where it begins less than look_ahead_tokens behind it in the
  // input: nobody who puts results back in order holds more than that, plus what is in flight.
  // Throws Error(kRecord) where the sequence has no tokens, its positions do not rise from 0 or
  // more, or its pool range is not inside it; the packer is then as before.
  void push(Sequence sequence);
  void finish();  // no more sequences will come
  // The next micro-batch, or nothing: push more (or, after finish(), all is packed). Its sequences
  // lie in the order of the input.
  std::optional<MicroBatch> next();

  int64_t waiting_tokens() const { return waiting_tokens_; }  // at most look-ahead + one sequence

 private:
  struct Waiting {
    Sequence sequence;
    uint64_t begin;  // tokens that came before it in the input
    int64_t length() const { return static_cast<int64_t>(sequence.tokens.size()); }
  };

  std::vector<size_t> choose() const;  // places in waiting_, rising
  void divide_rest();
  MicroBatch take(const std::vector<size_t>& places);

  PackerOptions options_;
  std::deque<Waiting> waiting_;  // in the order of the input
  int64_t waiting_tokens_ = 0;
  uint64_t pushed_tokens_ = 0;
  uint64_t next_number_ = 0;
  bool finished_ = false;
  std::deque<MicroBatch> rest_;  // after finish(): all that is left
};

}  // namespace quintet

#endif  // QUINTET_BATCH_PACKER_H_
