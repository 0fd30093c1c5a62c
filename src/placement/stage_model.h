// What a run of blocks costs on a device: seconds per token and bytes, from a stack's exact counts,
// a device's measured speed and the lengths to come.
#ifndef QUINTET_PLACEMENT_STAGE_MODEL_H_
#define QUINTET_PLACEMENT_STAGE_MODEL_H_

#include <cstdint>
#include <vector>

#include "core/block_cost.h"
#include "placement/planner.h"

namespace quintet {

class StageModel {
 public:
  StageModel(const StackCost& cost, const std::vector<DeviceSpec>& devices,
             const LengthProfile& profile);

  int64_t n_layers() const { return static_cast<int64_t>(cost_.blocks.size()); }
  double tokens_per_batch() const { return tokens_per_batch_; }  // mean
  int64_t n_batches() const { return n_batches_; }               // 0: many
  double mean_keys() const { return mean_keys_; }                // that a token attends to

  double seconds_per_token(size_t device, int64_t first, int64_t last) const;
  int64_t weight_bytes(int64_t first, int64_t last) const;
  int64_t activation_bytes(int64_t first, int64_t last) const;  // peak
  int64_t needed_bytes(size_t device, int64_t first, int64_t last) const;

 private:
  void read_profile();

  const StackCost& cost_;
  const std::vector<DeviceSpec>& devices_;
  const LengthProfile& profile_;
  double mean_keys_ = 0;
  double tokens_per_batch_ = 0;
  int64_t n_batches_ = 0;
  int64_t peak_tokens_ = 0;                   // of the largest micro-batch
  int64_t peak_len_ = 0;                      // of the longest sequence
  std::vector<std::vector<double>> seconds_;  // [device][n_layers + 1], of blocks before
  std::vector<int64_t> bytes_;                // [n_layers + 1], weights of blocks before
  std::vector<double> bias_;                  // [n_layers + 1], activation_bytes_per_max_len
};

}  // namespace quintet

#endif  // QUINTET_PLACEMENT_STAGE_MODEL_H_
