#include "placement/stack_bytes.h"

#include <algorithm>
#include <cmath>

namespace quintet {

StackBytes::StackBytes(const StackCost& cost)
    : cost_(cost), n_layers_(static_cast<int64_t>(cost.blocks.size())) {
  for (const BlockCost& block : cost.blocks) {
    weights_.push_back(weights_.back() + block.weight_bytes);
    page_.push_back(page_.back() + block.cache_bytes_per_page);
    bias_.push_back(bias_.back() + block.activation_bytes_per_max_len);
  }
}

int64_t StackBytes::weights(int64_t first, int64_t last) const {
  if (first == last) return 0;
  int64_t bytes = weights_[static_cast<size_t>(last)] - weights_[static_cast<size_t>(first)];
  bytes += cost_.per_stage_bytes;
  if (first == 0) bytes += cost_.first_bytes;
  if (last == n_layers_) bytes += cost_.last_bytes;
  if (first == 0 && last == n_layers_) bytes -= cost_.shared_bytes;
  return bytes;
}

int64_t StackBytes::activations(const PeakLoad& peak, int64_t first, int64_t last,
                                bool asynchronous) const {
  if (first == last) return 0;
  const double bias = cost_.activation_bytes_per_max_len + bias_[static_cast<size_t>(last)] -
                      bias_[static_cast<size_t>(first)];
  const auto tokens = static_cast<double>(peak.tokens);
  double bytes = cost_.activation_bytes_per_token * tokens +
                 cost_.activation_bytes_per_tile_row *
                     static_cast<double>(std::min(peak.tokens, cost_.tile_rows)) +
                 bias * static_cast<double>(peak.max_len);
  // What waits before the first stage is token ids, before the others hidden states in float32.
  const int64_t n_hidden = (first > 0 ? peak.n_waiting : 0) + (asynchronous ? 1 : 0);
  bytes += static_cast<double>(n_hidden) * tokens * static_cast<double>(cost_.d_model) * 4;
  return static_cast<int64_t>(std::ceil(bytes));
}

int64_t StackBytes::caches(int64_t n_pages, int64_t first, int64_t last) const {
  return n_pages * (page_[static_cast<size_t>(last)] - page_[static_cast<size_t>(first)]);
}

}  // namespace quintet
