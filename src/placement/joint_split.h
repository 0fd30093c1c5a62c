// The search behind the planner of generating: two stacks cut into runs at once, each device in
// turn taking the next blocks of either stack, of both or of none, so that the dearest device is as
// cheap as can be. Exact.
#ifndef QUINTET_PLACEMENT_JOINT_SPLIT_H_
#define QUINTET_PLACEMENT_JOINT_SPLIT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace quintet {

struct BlockSpan {
  int64_t first = 0;
  int64_t last = 0;  // one past the last block; first: no blocks

  bool empty() const { return first == last; }
  int64_t size() const { return last - first; }
};

struct JointRun {
  BlockSpan encoder;
  BlockSpan decoder;

  bool empty() const { return encoder.empty() && decoder.empty(); }
};

// The price of a device that holds this; infinity: it cannot. Never falls when a run is lengthened
// at its end. Not asked for runs that are empty in both stacks.
using JointPrice = std::function<double(size_t device, const JointRun& run)>;

struct JointSplit {
  double worst = 0;            // price of the dearest device; infinity: there is no way
  std::vector<JointRun> runs;  // [n_devices], some perhaps empty; none: there is no way
};

// Minimises the price of the dearest device over all splits in which at most max_decoder_stages
// devices hold decoder blocks. Among equals the least sum of squares, that is the most even one.
// n_encoder may be 0.
JointSplit search_joint_split(int64_t n_encoder, int64_t n_decoder, size_t n_devices,
                              size_t max_decoder_stages, const JointPrice& price);

}  // namespace quintet

#endif  // QUINTET_PLACEMENT_JOINT_SPLIT_H_
