// Cuts a micro-batch between sequences into parts that the threads of a device work on side by
// side: no part waits for another before the batch is done, as they would after each op on all of
// it.
#ifndef QUINTET_MODELS_BATCH_PARTS_H_
#define QUINTET_MODELS_BATCH_PARTS_H_

#include <cstdint>
#include <vector>

#include "core/micro_batch.h"

namespace quintet {

struct BatchPart {
  MicroBatch batch;  // some of the sequences, without their pool ranges
  int64_t first_row = 0;
};

// At most `wanted` parts, and few enough for each to have the rows that make reading the weights
// once more for it worth while; as even as the sequences allow where they stand. Nothing where the
// batch is to stay whole.
std::vector<BatchPart> cut_batch(const MicroBatch& batch, int64_t wanted);

}  // namespace quintet

#endif  // QUINTET_MODELS_BATCH_PARTS_H_
