// Several sequences laid end to end without padding: what travels from stage to stage.
#ifndef QUINTET_CORE_MICRO_BATCH_H_
#define QUINTET_CORE_MICRO_BATCH_H_

#include <cstdint>
#include <vector>

namespace quintet {

// One sequence on its way to a micro-batch: only the tokens that are attended to. Positions keep
// the places these had in the record, so a hole in a mask shifts relative distances.
struct Sequence {
  uint64_t ordinal = 0;            // number of its record in the input, counted from 0
  std::vector<int32_t> tokens;     // [n]
  std::vector<int32_t> positions;  // [n], rising; empty means 0 .. n - 1
  int32_t pool_begin = 0;          // rows [pool_begin, pool_end) are the record's own: without
  int32_t pool_end = 0;            //   prefix and, for proteins, </s>
};

struct MicroBatch {
  std::vector<int32_t> tokens;      // [n_tokens]
  std::vector<int32_t> positions;   // [n_tokens], from 0 in each sequence
  std::vector<int32_t> cu_seqlens;  // [n_seqs + 1], where each sequence starts; the last: n_tokens
  std::vector<uint64_t> ordinals;   // [n_seqs], the record of each sequence
  std::vector<int32_t> pool_begin;  // [n_seqs], rows of the micro-batch to keep or pool over
  std::vector<int32_t> pool_end;    // [n_seqs]
  int32_t max_len = 0;              // 1 + the largest position: distances are below it
  uint64_t number = 0;              // counted from 0 in the order of packing

  int64_t n_tokens() const { return static_cast<int64_t>(tokens.size()); }
  int64_t n_seqs() const { return static_cast<int64_t>(ordinals.size()); }
};

}  // namespace quintet

#endif  // QUINTET_CORE_MICRO_BATCH_H_
