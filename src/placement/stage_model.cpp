#include "placement/stage_model.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace quintet {
namespace {

// Of proteins, where nothing is known of the input.
constexpr int32_t kDefaultLength = 300;

// One token through one block. A device streams the block's weights once per micro-batch, and can
// be no faster than that, however few tokens there are.
double block_seconds(const BlockCost& block, const DeviceSpec& device, double mean_keys,
                     double tokens_per_batch) {
  const auto bytes = static_cast<double>(block.weight_bytes);
  return product_seconds(device, block.flops_per_token, bytes / tokens_per_batch) +
         block.attention_flops_per_token_key * mean_keys / device.attention_flops_per_second;
}

}  // namespace

double product_seconds(const DeviceSpec& device, double flops, double weight_bytes) {
  const double computing = flops / device.flops_per_second;
  if (!(device.bytes_per_second > 0)) return computing;
  return std::max(computing, weight_bytes / device.bytes_per_second);
}

double head_bytes(const StackCost& cost) {
  return cost.last_params > 0 ? static_cast<double>(cost.last_bytes) : 0;
}

void check_speed(const DeviceSpec& device) {
  if (!(device.flops_per_second > 0) || !(device.attention_flops_per_second > 0)) {
    fail(ErrorKind::kUsage, "{}: its speed is {} and {} flops/s, expected above 0", device.name,
         device.flops_per_second, device.attention_flops_per_second);
  }
}

StageModel::StageModel(const StackCost& cost, const std::vector<DeviceSpec>& devices,
                       const LengthProfile& profile)
    : devices_(devices), profile_(profile), bytes_(cost) {
  read_profile();
  for (const DeviceSpec& device : devices) {
    check_speed(device);
    auto& seconds = seconds_.emplace_back(1, 0.0);
    for (const BlockCost& block : cost.blocks) {
      seconds.push_back(seconds.back() +
                        block_seconds(block, device, mean_keys_, tokens_per_batch_));
    }
    seconds.back() +=
        product_seconds(device, cost.last_flops_per_token, head_bytes(cost) / tokens_per_batch_);
  }
}

void StageModel::read_profile() {
  const std::vector<int32_t> unknown = {kDefaultLength};
  const auto& lengths = profile_.lengths.empty() ? unknown : profile_.lengths;
  const int64_t budget = std::max<int64_t>(1, profile_.tokens_per_batch);
  double tokens = 0;
  double token_keys = 0;
  double packed = 0;  // tokens of sequences that share micro-batches
  double alone = 0;   // sequences at or above the budget: a micro-batch each
  for (const int32_t length : lengths) {
    const double n = std::max(1, length);
    tokens += n;
    token_keys += n * n;
    packed += length < budget ? n : 0;
    alone += length < budget ? 0 : 1;
    peak_.max_len = std::max(peak_.max_len, static_cast<int64_t>(n));
  }
  mean_keys_ = token_keys / tokens;
  const auto sampled = static_cast<double>(lengths.size());
  const double scale = profile_.n_records > 0 ? static_cast<double>(profile_.n_records) / sampled
                                              : 1e6 / sampled + 1;
  const double batches =
      std::max(1.0, std::ceil(packed * scale / static_cast<double>(budget)) + alone * scale);
  tokens_per_batch_ = tokens * scale / batches;
  peak_.tokens = std::max(budget, peak_.max_len);
  peak_.n_waiting = std::max<int64_t>(0, profile_.batches_in_flight - 1);
  if (profile_.n_records > 0) {
    n_batches_ = std::llround(batches);
    const auto all = static_cast<int64_t>(std::ceil(tokens * scale));
    peak_.tokens = std::max(std::min(budget, all), peak_.max_len);
  }
}

double StageModel::seconds_per_token(size_t device, int64_t first, int64_t last) const {
  const auto& seconds = seconds_[device];
  return seconds[static_cast<size_t>(last)] - seconds[static_cast<size_t>(first)];
}

int64_t StageModel::needed_bytes(size_t device, int64_t first, int64_t last) const {
  return weight_bytes(first, last) + activation_bytes(device, first, last) +
         devices_[device].fixed_bytes;
}

}  // namespace quintet
