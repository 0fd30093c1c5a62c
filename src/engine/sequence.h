// From ids and mask to the sequence that is computed, and from its rows back to the record's.
#ifndef QUINTET_ENGINE_SEQUENCE_H_
#define QUINTET_ENGINE_SEQUENCE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/micro_batch.h"

namespace quintet {

// The ids whose mask is not 0 (an empty mask counts all), with their places relative to the first
// of them; every row is pooled. Nothing is left of a row that is masked as a whole. Throws
// Error(kRecord) on an id outside the vocabulary, with its place, or a mask of another length.
Sequence sequence_from_ids(std::span<const int64_t> ids, std::span<const uint8_t> mask,
                           int64_t vocab_size);

// The opposite way: `rows` [number of ids with mask != 0, width] become [mask.size(), width] with
// zeros where the mask is 0. An empty mask: the rows as they are.
std::vector<float> unmask_rows(std::span<const float> rows, std::span<const uint8_t> mask,
                               size_t width);

}  // namespace quintet

#endif  // QUINTET_ENGINE_SEQUENCE_H_
