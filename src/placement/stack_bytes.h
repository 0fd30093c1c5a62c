// What a run of a stack's blocks takes of a device's memory, from the stack's exact counts.
#ifndef QUINTET_PLACEMENT_STACK_BYTES_H_
#define QUINTET_PLACEMENT_STACK_BYTES_H_

#include <cstdint>
#include <vector>

#include "core/block_cost.h"

namespace quintet {

// The most that passes at once.
struct PeakLoad {
  int64_t tokens = 0;     // of a micro-batch or step
  int64_t max_len = 0;    // of a sequence
  int64_t n_waiting = 0;  // micro-batches that wait before a stage
};

class StackBytes {
 public:
  explicit StackBytes(const StackCost& cost);

  int64_t n_layers() const { return n_layers_; }
  // Of blocks [first, last) with what goes with the stack's ends; 0 for no blocks.
  int64_t weights(int64_t first, int64_t last) const;
  // Rounded up; 0 for no blocks. An asynchronous device has two micro-batches under way: the next
  // one is computed while the hidden states of the one before leave.
  int64_t activations(const PeakLoad& peak, int64_t first, int64_t last, bool asynchronous) const;
  int64_t caches(int64_t n_pages, int64_t first, int64_t last) const;

 private:
  const StackCost& cost_;
  int64_t n_layers_;
  // [n_layers + 1], of blocks before
  std::vector<int64_t> weights_{0};
  std::vector<int64_t> page_{0};
  std::vector<double> bias_{0};  // activation_bytes_per_max_len
};

}  // namespace quintet

#endif  // QUINTET_PLACEMENT_STACK_BYTES_H_
