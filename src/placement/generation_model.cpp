#include "placement/generation_model.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "core/row_stride.h"
#include "core/step_batch.h"

namespace quintet {
namespace {

// Logits of so many rows or bytes, whichever is more, exist at a time.
constexpr int64_t kLogitsRows = 64;
constexpr int64_t kLogitsBytes = int64_t{32} << 20;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The most that `count` of `n_records` (0: many) records can need together: the largest of them
// where all are known, else the largest one's share that often.
int64_t most_together(std::vector<int64_t> of_records, int64_t count, int64_t n_records) {
  const auto known = static_cast<int64_t>(of_records.size());
  std::sort(of_records.begin(), of_records.end(), std::greater<>());
  if (n_records == 0 || n_records > known) return count * of_records.front();
  return std::accumulate(of_records.begin(), of_records.begin() + std::min(count, known),
                         int64_t{0});
}

}  // namespace

GenerationModel::GenerationModel(const GenerationStacks& stacks,
                                 const std::vector<DeviceSpec>& devices,
                                 const GenerationProfile& profile, const GroupSetting& setting)
    : stacks_(stacks),
      devices_(devices),
      profile_(profile),
      setting_(setting),
      encoder_profile_(encoder_profile()),
      decoder_bytes_(stacks.decoder) {
  if (stacks.encoder) encoder_.emplace(*stacks.encoder, devices, encoder_profile_);
  read_records();
  share_passes();
  count_pages();
  set_peak();
  if (stacks.encoder) count_sources();
  const StackCost& cost = stacks.decoder;
  for (const DeviceSpec& device : devices) {
    check_speed(device);
    auto& seconds = decoder_seconds_.emplace_back(1, 0.0);
    for (const BlockCost& block : cost.blocks) {
      seconds.push_back(seconds.back() + block_seconds(device, block));
    }
    seconds.back() += passes_seconds(device, cost.last_flops_per_token, head_bytes(cost),
                                     profile.scores_prompts ? mean_.prompt : 1);
  }
}

LengthProfile GenerationModel::encoder_profile() const {
  LengthProfile lengths;
  for (const ExpectedGeneration& record : profile_.records) {
    lengths.lengths.push_back(std::max(1, record.source_tokens));
  }
  lengths.n_records = profile_.n_records;
  lengths.tokens_per_batch = profile_.encode_tokens_per_batch;
  return lengths;
}

void GenerationModel::read_records() {
  const auto rows = static_cast<double>(profile_.rows_per_record);
  for (const ExpectedGeneration& record : profile_.records) {
    const double source = record.source_tokens;
    const double prompt = std::max(1, record.prompt_tokens);
    const double steps = std::max(1, record.new_tokens);
    mean_.source += source;
    mean_.prompt += prompt;
    mean_.steps += steps;
    mean_.prompt_keys += prompt * (prompt + 1) / 2;
    // The step for new token j + 1 has prompt + j keys: its own is the last of them.
    mean_.step_keys += rows * (steps - 1) * (prompt + steps / 2);
    mean_.cross_keys += (prompt + rows * (steps - 1)) * source;
  }
  const auto n = static_cast<double>(profile_.records.size());
  for (double* sum : {&mean_.source, &mean_.prompt, &mean_.steps, &mean_.prompt_keys,
                      &mean_.step_keys, &mean_.cross_keys}) {
    *sum /= n;
  }
}

void GenerationModel::share_passes() {
  auto in_group = static_cast<double>(setting_.records_per_group);
  if (profile_.n_records > 0) {
    in_group = static_cast<double>(
        std::min(setting_.records_per_group, ceil_div(profile_.n_records, setting_.n_groups)));
  }
  // Places become free one by one, or several in a step where records are short.
  const double budget = static_cast<double>(profile_.prompt_tokens_per_step) / mean_.prompt;
  passes_.prompts =
      std::min({std::max(1.0, in_group / mean_.steps), std::max(1.0, budget), in_group});
  passes_.with_prompts = 1 / passes_.prompts;
  const double all = std::max(mean_.steps / in_group, passes_.with_prompts);
  passes_.without = all - passes_.with_prompts;
  passes_.rows = static_cast<double>(profile_.rows_per_record) * (mean_.steps - 1) / all;
}

int64_t GenerationModel::records_at_once() const {
  const int64_t places = setting_.n_groups * setting_.records_per_group;
  return profile_.n_records > 0 ? std::min(places, profile_.n_records) : places;
}

void GenerationModel::count_pages() {
  std::vector<int64_t> self;
  std::vector<int64_t> cross;
  for (const ExpectedGeneration& record : profile_.records) {
    self.push_back(record.self_pages);
    cross.push_back(record.cross_pages);
  }
  self_pages_ = most_together(std::move(self), records_at_once(), profile_.n_records);
  cross_pages_ = most_together(std::move(cross), records_at_once(), profile_.n_records);
}

// Records are encoded ahead, for all places that are free and one group more. Their output waits
// until a step takes it along to each decoder stage.
void GenerationModel::count_sources() {
  std::vector<int64_t> sources;
  for (const ExpectedGeneration& record : profile_.records) {
    sources.push_back(record.source_tokens);
  }
  const int64_t longest = *std::ranges::max_element(sources);
  const int64_t in_step = std::max(
      longest, std::min(profile_.source_tokens_per_step, setting_.records_per_group * longest));
  const int64_t waiting = most_together(
      std::move(sources), records_at_once() + setting_.records_per_group, profile_.n_records);
  const int64_t row_bytes = row_stride(stacks_.encoder->d_model) * 4;
  encoded_bytes_ = waiting * row_bytes;
  source_bytes_ = std::min(setting_.n_groups * in_step, waiting) * row_bytes;
}

void GenerationModel::set_peak() {
  int64_t longest_prompt = 1;
  for (const ExpectedGeneration& record : profile_.records) {
    const int64_t prompt = std::max(1, record.prompt_tokens);
    longest_prompt = std::max(longest_prompt, prompt);
    peak_.max_len = std::max(peak_.max_len, prompt + std::max(1, record.new_tokens) - 1);
  }
  const int64_t rows = setting_.records_per_group * profile_.rows_per_record;
  const int64_t prompts = std::max(
      longest_prompt,
      std::min(profile_.prompt_tokens_per_step, setting_.records_per_group * longest_prompt));
  peak_.tokens = prompts + rows;
  peak_.n_waiting = setting_.n_groups - 1;

  const StackCost& cost = stacks_.decoder;
  if (cost.last_params > 0 && cost.d_model > 0) {
    const int64_t selected = profile_.scores_prompts ? peak_.tokens : rows;
    const int64_t row_bytes = row_stride(cost.last_params / cost.d_model) * 4;
    logits_bytes_ = std::min(selected * row_bytes, std::max(kLogitsRows * row_bytes, kLogitsBytes));
  }
}

// Products over the rows of all passes that a record has a part in.
double GenerationModel::passes_seconds(const DeviceSpec& device, double flops_per_row,
                                       double weight_bytes, double prompt_rows) const {
  const double with_prompts = passes_.prompts * prompt_rows + passes_.rows;
  return passes_.with_prompts *
             product_seconds(device, flops_per_row * with_prompts, weight_bytes) +
         passes_.without * product_seconds(device, flops_per_row * passes_.rows, weight_bytes);
}

double GenerationModel::block_seconds(const DeviceSpec& device, const BlockCost& block) const {
  const auto source_weights = static_cast<double>(block.source_weight_bytes);
  const double weights = static_cast<double>(block.weight_bytes) - source_weights;
  double seconds = passes_seconds(device, block.flops_per_token, weights, mean_.prompt);
  seconds += passes_.with_prompts *
             product_seconds(device, block.flops_per_source_token * mean_.source * passes_.prompts,
                             mean_.source > 0 ? source_weights : 0);
  // A step's row reads its keys and values from memory; a record's rows share those of the cross
  // cache.
  const double flops = block.attention_flops_per_token_key;
  const double key_bytes = static_cast<double>(block.cache_bytes_per_page) / kPageTokens;
  seconds += flops * mean_.prompt_keys / device.attention_flops_per_second;
  const double keys = mean_.step_keys + mean_.cross_keys;
  const double read = mean_.step_keys + mean_.steps * mean_.source;
  double attention = flops * keys / device.attention_flops_per_second;
  if (device.bytes_per_second > 0) {
    attention = std::max(attention, key_bytes * read / device.bytes_per_second);
  }
  return seconds + attention;
}

double GenerationModel::encoder_seconds(size_t device, const BlockSpan& blocks) const {
  if (blocks.empty()) return 0;
  return encoder_->seconds_per_token(device, blocks.first, blocks.last) * mean_.source;
}

double GenerationModel::decoder_seconds(size_t device, const BlockSpan& blocks) const {
  const auto& seconds = decoder_seconds_[device];
  return seconds[static_cast<size_t>(blocks.last)] - seconds[static_cast<size_t>(blocks.first)];
}

int64_t GenerationModel::encoder_weights(const BlockSpan& blocks) const {
  return blocks.empty() ? 0 : encoder_->weight_bytes(blocks.first, blocks.last);
}

int64_t GenerationModel::decoder_weights(const BlockSpan& blocks) const {
  return decoder_bytes_.weights(blocks.first, blocks.last);
}

DeviceBytes GenerationModel::bytes(size_t device, const JointRun& run) const {
  DeviceBytes bytes;
  bytes.weights = encoder_weights(run.encoder) + decoder_weights(run.decoder);
  bytes.caches =
      decoder_bytes_.caches(self_pages_ + cross_pages_, run.decoder.first, run.decoder.last);
  if (!run.encoder.empty()) {
    bytes.activations += encoder_->activation_bytes(device, run.encoder.first, run.encoder.last);
    if (run.encoder.last == n_encoder()) bytes.activations += encoded_bytes_;
  }
  if (!run.decoder.empty()) {
    bytes.activations += decoder_bytes_.activations(peak_, run.decoder.first, run.decoder.last,
                                                    devices_[device].asynchronous);
    bytes.activations += source_bytes_;
    if (run.decoder.last == n_decoder()) bytes.activations += logits_bytes_;
  }
  return bytes;
}

double GenerationModel::records_per_second(double slowest, double all_decoder_stages) const {
  auto groups = static_cast<double>(setting_.n_groups);
  if (profile_.n_records > 0) {
    groups = static_cast<double>(std::min(setting_.n_groups, profile_.n_records));
  }
  return 1 / std::max(slowest, all_decoder_stages / groups);
}

}  // namespace quintet
