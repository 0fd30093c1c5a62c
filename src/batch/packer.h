// Sequences to micro-batches: no padding, bounded tokens, bounded look-ahead.
#ifndef QUINTET_BATCH_PACKER_H_
#define QUINTET_BATCH_PACKER_H_

#include <cstdint>
#include <deque>
#include <optional>

#include "core/micro_batch.h"

namespace quintet {

struct PackerOptions {
  int64_t tokens_per_batch = 512;    // a longer sequence is a micro-batch of its own
  int64_t look_ahead_tokens = 2048;  // how much may wait inside
};

class Packer {
 public:
  explicit Packer(PackerOptions options);

  void push(Sequence sequence);
  void finish();  // no more sequences will come
  // The next micro-batch, or nothing: push more (or, after finish(), all is packed).
  std::optional<MicroBatch> next();

 private:
  PackerOptions options_;
};

}  // namespace quintet

#endif  // QUINTET_BATCH_PACKER_H_
