// The search behind the planner: blocks 0 .. n - 1 cut into runs, the runs given to devices in
// order, some devices perhaps left out, so that the worst run is as good as can be. Exact.
#ifndef QUINTET_PLACEMENT_SPLIT_SEARCH_H_
#define QUINTET_PLACEMENT_SPLIT_SEARCH_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace quintet {

struct BlockRun {
  size_t device = 0;
  int64_t first = 0;
  int64_t last = 0;  // one past the last block
};

// The price of blocks [first, last) on a device; infinity: it cannot hold them.
using RunPrice = std::function<double(size_t device, int64_t first, int64_t last)>;

struct SplitResult {
  double worst = 0;            // price of the dearest run
  std::vector<BlockRun> runs;  // in order; empty: there is no way
};

// Minimises the price of the dearest run over all splits on at most max_devices of n_devices. Among
// equals: as many devices as possible, then the least sum of squares, that is the most even one.
// Takes O(n_devices^2 n_blocks^2) steps.
SplitResult search_split(int64_t n_blocks, size_t n_devices, size_t max_devices,
                         const RunPrice& price);

}  // namespace quintet

#endif  // QUINTET_PLACEMENT_SPLIT_SEARCH_H_
