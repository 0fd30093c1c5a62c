#include "engine/sequence.h"

#include <algorithm>

#include "core/error.h"

namespace quintet {

Sequence sequence_from_ids(std::span<const int64_t> ids, std::span<const uint8_t> mask,
                           int64_t vocab_size) {
  if (!mask.empty() && mask.size() != ids.size()) {
    fail(ErrorKind::kRecord, "attention_mask has {} entries, input_ids {}", mask.size(),
         ids.size());
  }
  Sequence sequence;
  sequence.tokens.reserve(ids.size());
  size_t first = 0;
  size_t last = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= vocab_size) {
      fail(ErrorKind::kRecord, "token {} at position {} is outside the vocabulary of {}", ids[i], i,
           vocab_size);
    }
    if (!mask.empty() && mask[i] == 0) continue;
    if (sequence.tokens.empty()) first = i;
    last = i;
    sequence.tokens.push_back(static_cast<int32_t>(ids[i]));
    if (!mask.empty()) sequence.positions.push_back(static_cast<int32_t>(i - first));
  }
  if (last - first + 1 == sequence.tokens.size()) sequence.positions.clear();  // no hole inside
  sequence.pool_end = static_cast<int32_t>(sequence.tokens.size());
  return sequence;
}

std::vector<float> unmask_rows(std::span<const float> rows, std::span<const uint8_t> mask,
                               size_t width) {
  if (mask.empty()) return {rows.begin(), rows.end()};
  std::vector<float> all(mask.size() * width);
  size_t next = 0;
  for (size_t i = 0; i < mask.size(); ++i) {
    if (mask[i] == 0) continue;
    std::copy_n(rows.data() + next, width, all.data() + i * width);
    next += width;
  }
  return all;
}

}  // namespace quintet
