#include "models/batch_parts.h"

#include <algorithm>

namespace quintet {
namespace {

constexpr int64_t kLeastRows = 128;  // of a part, on average
constexpr int64_t kMostParts = 4;    // so that a part's tile has that many as well

// Sequences [first, last) of a batch.
MicroBatch sequences(const MicroBatch& batch, int64_t first, int64_t last) {
  const int32_t begin = batch.cu_seqlens[static_cast<size_t>(first)];
  const int32_t end = batch.cu_seqlens[static_cast<size_t>(last)];
  MicroBatch part;
  part.tokens.assign(batch.tokens.begin() + begin, batch.tokens.begin() + end);
  part.positions.assign(batch.positions.begin() + begin, batch.positions.begin() + end);
  part.ordinals.assign(batch.ordinals.begin() + first, batch.ordinals.begin() + last);
  part.max_len = batch.max_len;
  part.number = batch.number;
  part.cu_seqlens.push_back(0);
  for (auto s = static_cast<size_t>(first); s < static_cast<size_t>(last); ++s) {
    part.cu_seqlens.push_back(batch.cu_seqlens[s + 1] - begin);
  }
  return part;
}

// The boundary between sequences that is nearest to a row.
int64_t nearest_boundary(const MicroBatch& batch, int64_t row) {
  const auto& starts = batch.cu_seqlens;
  auto at = std::lower_bound(starts.begin(), starts.end(), row);
  if (at != starts.begin() && row - *(at - 1) < *at - row) --at;
  return at - starts.begin();
}

}  // namespace

std::vector<BatchPart> cut_batch(const MicroBatch& batch, int64_t wanted) {
  const int64_t n_tokens = batch.n_tokens();
  const int64_t n_parts =
      std::clamp<int64_t>(n_tokens / kLeastRows, 1, std::min(wanted, kMostParts));
  const int64_t least = n_tokens / (4 * n_parts);
  const auto row_of = [&](int64_t s) { return int64_t{batch.cu_seqlens[static_cast<size_t>(s)]}; };
  std::vector<BatchPart> parts;
  int64_t first = 0;
  for (int64_t i = 1; i <= n_parts; ++i) {
    const int64_t last =
        i == n_parts ? batch.n_seqs() : nearest_boundary(batch, n_tokens * i / n_parts);
    const bool too_small = row_of(last) - row_of(first) < least || n_tokens - row_of(last) < least;
    if (i < n_parts && too_small) continue;
    if (first == 0 && last == batch.n_seqs()) return {};
    parts.push_back({sequences(batch, first, last), row_of(first)});
    first = last;
  }
  return parts;
}

}  // namespace quintet
