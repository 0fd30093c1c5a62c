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
  double products = block.flops_per_token / device.flops_per_second;
  if (device.bytes_per_second > 0) {
    products = std::max(products, static_cast<double>(block.weight_bytes) /
                                      (device.bytes_per_second * tokens_per_batch));
  }
  return products +
         block.attention_flops_per_token_key * mean_keys / device.attention_flops_per_second;
}

}  // namespace

StageModel::StageModel(const StackCost& cost, const std::vector<DeviceSpec>& devices,
                       const LengthProfile& profile)
    : cost_(cost), devices_(devices), profile_(profile), bytes_(1, 0), bias_(1, 0) {
  read_profile();
  for (const BlockCost& block : cost.blocks) {
    bytes_.push_back(bytes_.back() + block.weight_bytes);
    bias_.push_back(bias_.back() + block.activation_bytes_per_max_len);
  }
  for (const DeviceSpec& device : devices) {
    if (!(device.flops_per_second > 0) || !(device.attention_flops_per_second > 0)) {
      fail(ErrorKind::kUsage, "{}: its speed is {} and {} flops/s, expected above 0", device.name,
           device.flops_per_second, device.attention_flops_per_second);
    }
    auto& seconds = seconds_.emplace_back(1, 0.0);
    for (const BlockCost& block : cost.blocks) {
      seconds.push_back(seconds.back() +
                        block_seconds(block, device, mean_keys_, tokens_per_batch_));
    }
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
    peak_len_ = std::max(peak_len_, static_cast<int64_t>(n));
  }
  mean_keys_ = token_keys / tokens;
  const auto sampled = static_cast<double>(lengths.size());
  const double scale = profile_.n_records > 0 ? static_cast<double>(profile_.n_records) / sampled
                                              : 1e6 / sampled + 1;
  const double batches =
      std::max(1.0, std::ceil(packed * scale / static_cast<double>(budget)) + alone * scale);
  tokens_per_batch_ = tokens * scale / batches;
  peak_tokens_ = std::max(budget, peak_len_);
  if (profile_.n_records > 0) {
    n_batches_ = std::llround(batches);
    const auto all = static_cast<int64_t>(std::ceil(tokens * scale));
    peak_tokens_ = std::max(std::min(budget, all), peak_len_);
  }
}

double StageModel::seconds_per_token(size_t device, int64_t first, int64_t last) const {
  const auto& seconds = seconds_[device];
  return seconds[static_cast<size_t>(last)] - seconds[static_cast<size_t>(first)];
}

int64_t StageModel::weight_bytes(int64_t first, int64_t last) const {
  int64_t bytes = bytes_[static_cast<size_t>(last)] - bytes_[static_cast<size_t>(first)];
  bytes += cost_.per_stage_bytes;
  if (first == 0) bytes += cost_.first_bytes;
  if (last == n_layers()) bytes += cost_.last_bytes;
  return bytes;
}

int64_t StageModel::activation_bytes(int64_t first, int64_t last) const {
  const double bias = cost_.activation_bytes_per_max_len + bias_[static_cast<size_t>(last)] -
                      bias_[static_cast<size_t>(first)];
  const auto tokens = static_cast<double>(peak_tokens_);
  double bytes = cost_.activation_bytes_per_token * tokens +
                 cost_.activation_bytes_per_tile_row *
                     static_cast<double>(std::min(peak_tokens_, cost_.tile_rows)) +
                 bias * static_cast<double>(peak_len_);
  // What waits before the first stage is token ids, before the others hidden states in float32.
  if (first > 0) {
    bytes += static_cast<double>(std::max<int64_t>(0, profile_.batches_in_flight - 1)) * tokens *
             static_cast<double>(cost_.d_model) * 4;
  }
  return static_cast<int64_t>(std::ceil(bytes));
}

int64_t StageModel::needed_bytes(size_t device, int64_t first, int64_t last) const {
  return weight_bytes(first, last) + activation_bytes(first, last) + devices_[device].fixed_bytes;
}

}  // namespace quintet
