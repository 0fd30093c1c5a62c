#include "engine/generation_layout.h"

#include <malloc.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "engine/device_choice.h"
#include "engine/layout.h"
#include "placement/host_bytes.h"

namespace quintet {
namespace {

constexpr int64_t kTokensPerStep = 2048;  // of prompts: a whole group of them at the start
constexpr int64_t kEncodedTokens = 512;
constexpr int64_t kScoredTokensPerStep = 256;  // each has a row of logits

int64_t rows_per_record(const GenerationConfig& config) {
  return std::max<int64_t>(config.num_beams, config.num_return_sequences);
}

// That a record with such a prompt may get at most.
int64_t new_tokens(const GenerationConfig& config, int64_t prompt, int64_t max_positions) {
  int64_t most = resolved_max_length(config, prompt, max_positions);
  if (max_positions > 0) most = std::min(most, max_positions);
  return std::max<int64_t>(most - prompt, 1);
}

GenerationProfile profile_of(const Options& options, const GenerationConfig& config,
                             const ExpectedPrompts& expected, int64_t max_positions, bool scores) {
  GenerationProfile profile;
  profile.n_records = expected.n_records;
  profile.rows_per_record = scores ? 1 : rows_per_record(config);
  profile.rows_per_group = options.batch_size;
  const int64_t tokens = scores ? kScoredTokensPerStep : kTokensPerStep;
  profile.prompt_tokens_per_step = options.tokens_per_batch > 0 ? options.tokens_per_batch : tokens;
  profile.encode_tokens_per_batch = std::min(profile.prompt_tokens_per_step, kEncodedTokens);
  profile.scores_prompts = scores;
  for (size_t i = 0; i < expected.prompt_lengths.size(); ++i) {
    ExpectedGeneration record;
    record.prompt_tokens = expected.prompt_lengths[i];
    record.source_tokens = expected.source_lengths.empty() ? 0 : expected.source_lengths[i];
    if (!scores) {
      record.new_tokens =
          static_cast<int32_t>(new_tokens(config, record.prompt_tokens, max_positions));
    }
    const CachePages pages = pages_of_record(record.prompt_tokens, record.source_tokens,
                                             profile.rows_per_record, record.new_tokens);
    record.self_pages = scores ? 0 : pages.self;
    record.cross_pages = pages.cross;
    profile.records.push_back(record);
  }
  return profile;
}

GenerationStacks stacks_of(const GenerationFolder& folder, DType dtype) {
  GenerationStacks stacks;
  if (folder.encoder != nullptr) stacks.encoder = folder.encoder->cost(dtype);
  stacks.decoder = folder.decoder->cost(*folder.checkpoint, dtype, folder.with_head);
  return stacks;
}

}  // namespace

GeneratorOptions GenerationLayout::generator() const {
  return {.n_groups = plan.n_groups,
          .rows_per_group = plan.rows_per_group,
          .prompt_tokens_per_step = profile.prompt_tokens_per_step,
          .source_tokens_per_step = profile.source_tokens_per_step,
          .encode_tokens_per_batch = profile.encode_tokens_per_batch,
          .pages = pages(),
          .max_positions = max_positions};
}

int64_t GenerationLayout::planned_peak_bytes() const {
  int64_t bytes = 0;
  for (const DevicePlan& device : plan.devices) bytes += device.needed_bytes();
  return bytes;
}

GenerationLayout make_generation_layout(const GenerationFolder& folder, const Options& options,
                                        const GenerationConfig& config,
                                        const ExpectedPrompts& expected, bool scores) {
  const DeviceMapOption map_option = parse_device_map(options.device_map);
  GenerationLayout layout;
  layout.dtype = options.dtype.value_or(folder.stored_dtype());
  layout.max_positions = folder.decoder->max_positions();
  layout.profile = profile_of(options, config, expected, layout.max_positions, scores);
  layout.context.dtype = std::string(name_of(layout.dtype));
  for (const DType other : {DType::kFloat32, DType::kBFloat16}) {
    if (other != layout.dtype) {
      layout.context.other_dtypes.emplace_back(name_of(other), stacks_of(folder, other));
    }
  }
  DeviceChoice devices = choose_devices(options, map_option, layout.dtype);
  ::malloc_trim(0);  // what reading the tokenizer's files took for a moment does not count
  devices.specs.front().fixed_bytes =
      resident_bytes() + host_bytes({.d_model = folder.decoder->d_model(),
                                     .batch_rows = layout.profile.prompt_tokens_per_step,
                                     .longest_rows = 1,
                                     .n_stages = static_cast<int64_t>(devices.names.size()),
                                     .n_threads = devices.n_threads});
  const GenerationStacks stacks = stacks_of(folder, layout.dtype);
  if (map_option.rule == MapRule::kAuto) {
    layout.plan = plan_generation(stacks, devices.specs, layout.profile, layout.context);
    layout.maps = {.encoder = layout.plan.encoder.device_map(),
                   .decoder = layout.plan.decoder.device_map()};
    return layout;
  }
  const int64_t n_encoder_layers = folder.encoder == nullptr ? 0 : folder.encoder->n_layers();
  layout.maps = stack_maps(map_option, n_encoder_layers, folder.decoder->n_layers(), devices.names);
  layout.maps.encoder = canonical_map(layout.maps.encoder, devices.names);
  layout.maps.decoder = canonical_map(layout.maps.decoder, devices.names);
  layout.plan =
      evaluate_generation_maps(stacks, layout.maps, devices.specs, layout.profile, layout.context);
  return layout;
}

}  // namespace quintet
