// What a run of blocks costs on a device: seconds per token and bytes, from a stack's exact counts,
// a device's measured speed and the lengths to come.
#ifndef QUINTET_PLACEMENT_STAGE_MODEL_H_
#define QUINTET_PLACEMENT_STAGE_MODEL_H_

#include <cstdint>
#include <vector>

#include "core/block_cost.h"
#include "placement/planner.h"
#include "placement/stack_bytes.h"

namespace quintet {

// Of a matrix product: so many flops, for which a device has to stream so many bytes of weights.
double product_seconds(const DeviceSpec& device, double flops, double weight_bytes);

// Bytes that the head's product streams.
double head_bytes(const StackCost& cost);

// Throws Error(kUsage) on a device without a speed.
void check_speed(const DeviceSpec& device);

class StageModel {
 public:
  StageModel(const StackCost& cost, const std::vector<DeviceSpec>& devices,
             const LengthProfile& profile);

  int64_t n_layers() const { return bytes_.n_layers(); }
  double tokens_per_batch() const { return tokens_per_batch_; }  // mean
  int64_t n_batches() const { return n_batches_; }               // 0: many
  double mean_keys() const { return mean_keys_; }                // that a token attends to

  double seconds_per_token(size_t device, int64_t first, int64_t last) const;
  int64_t weight_bytes(int64_t first, int64_t last) const { return bytes_.weights(first, last); }
  int64_t activation_bytes(size_t device, int64_t first, int64_t last) const {  // peak
    return bytes_.activations(peak_, first, last, devices_[device].asynchronous);
  }
  int64_t needed_bytes(size_t device, int64_t first, int64_t last) const;

 private:
  void read_profile();

  const std::vector<DeviceSpec>& devices_;
  const LengthProfile& profile_;
  double mean_keys_ = 0;
  double tokens_per_batch_ = 0;
  int64_t n_batches_ = 0;
  PeakLoad peak_;
  StackBytes bytes_;
  std::vector<std::vector<double>> seconds_;  // [device][n_layers + 1], of blocks before; the last
                                              //   with the head
};

}  // namespace quintet

#endif  // QUINTET_PLACEMENT_STAGE_MODEL_H_
