// The public encoder classes: a loaded encoder and a pipeline that stays up between calls.
#include "quintet/encoder.h"

#include <algorithm>
#include <span>
#include <thread>
#include <utility>

#include "batch/packer.h"
#include "core/error.h"
#include "engine/loaded_encoder.h"
#include "engine/sequence.h"

namespace quintet {

struct PretrainedEncoder::Impl {
  EncoderFolder folder;
  LoadOptions options;
  DType dtype = DType::kFloat32;
  DeviceMap map;
  std::unique_ptr<LoadedEncoder> loaded;
  std::unique_ptr<Pipeline> pipeline;  // borrows the devices of `loaded`

  // Checks the map first; from then on the old weights are gone, as both may not fit.
  void place(const DeviceMap& device_map) {
    assert_device_map(device_map, folder.model->n_layers());
    DeviceMap named = device_map;
    std::vector<std::string> names;
    for (auto& [name, blocks] : named) {
      name = canonical_device_name(name);
      names.push_back(name);
      std::sort(blocks.begin(), blocks.end());
    }
    check_device_list(names);
    pipeline.reset();
    loaded.reset();
    loaded = std::make_unique<LoadedEncoder>(folder, named, dtype,
                                             OpenOptions{.threads = options.threads});
    pipeline = loaded->start({});
    map = std::move(named);
  }

  DeviceMap whole_on(const std::string& device) const {
    return get_device_map(folder.model->n_layers(), {device});
  }
};

PretrainedEncoder::PretrainedEncoder(const std::string& folder, const LoadOptions& options,
                                     const std::string& model_type)
    : impl_(std::make_unique<Impl>()) {
  impl_->folder = EncoderFolder::open(folder);
  impl_->options = options;
  const EncoderModel& model = *impl_->folder.model;
  if (model.model_type() != model_type) {
    fail(ErrorKind::kUsage, "{}: model_type is '{}', this class loads '{}'", folder,
         model.model_type(), model_type);
  }
  impl_->dtype = model.stored_dtype(*impl_->folder.checkpoint);
  if (!options.dtype.empty()) {
    const auto dtype = dtype_from_name(options.dtype);
    if (!dtype) {
      fail(ErrorKind::kUsage, "dtype '{}': expected float32, bfloat16 or float16", options.dtype);
    }
    impl_->dtype = *dtype;
  }
  impl_->place(options.device_map ? *options.device_map : impl_->whole_on(options.device));
}

PretrainedEncoder::PretrainedEncoder(PretrainedEncoder&&) noexcept = default;
PretrainedEncoder& PretrainedEncoder::operator=(PretrainedEncoder&&) noexcept = default;
PretrainedEncoder::~PretrainedEncoder() = default;

int64_t PretrainedEncoder::n_layers() const { return impl_->folder.model->n_layers(); }
int64_t PretrainedEncoder::d_model() const { return impl_->folder.model->d_model(); }
int64_t PretrainedEncoder::vocab_size() const { return impl_->folder.model->vocab_size(); }
bool PretrainedEncoder::is_parallel() const { return impl_->map.size() > 1; }
DeviceMap PretrainedEncoder::device_map() const { return impl_->map; }

void PretrainedEncoder::parallelize() {
  parallelize(get_device_map(n_layers(), devices_like(impl_->map.front().first)));
}

void PretrainedEncoder::parallelize(const DeviceMap& device_map) { impl_->place(device_map); }

void PretrainedEncoder::deparallelize() { impl_->place(impl_->whole_on(impl_->map.front().first)); }

std::vector<DeviceMemory> PretrainedEncoder::memory() const {
  std::vector<DeviceMemory> memory;
  for (const auto& device : impl_->loaded->devices()) {
    memory.push_back({.device = device->name(), .used = device->memory().used});
  }
  return memory;
}

std::vector<HiddenStates> PretrainedEncoder::encode(
    const std::vector<std::vector<int64_t>>& input_ids,
    const std::vector<std::vector<uint8_t>>& attention_mask) {
  if (!attention_mask.empty() && attention_mask.size() != input_ids.size()) {
    fail(ErrorKind::kRecord, "{} attention masks for {} sequences", attention_mask.size(),
         input_ids.size());
  }
  const auto mask_of = [&](size_t i) -> std::span<const uint8_t> {
    return attention_mask.empty() ? std::span<const uint8_t>() : attention_mask[i];
  };
  const auto width = static_cast<size_t>(d_model());
  std::vector<HiddenStates> results(input_ids.size());
  std::vector<MicroBatch> batches;
  Packer packer({.tokens_per_batch = impl_->options.tokens_per_batch});
  for (size_t i = 0; i < input_ids.size(); ++i) {
    results[i] = {.n_tokens = static_cast<int64_t>(input_ids[i].size()),
                  .d_model = d_model(),
                  .values = std::vector<float>(input_ids[i].size() * width)};
    try {
      Sequence sequence = sequence_from_ids(input_ids[i], mask_of(i), vocab_size());
      sequence.ordinal = i;
      if (!sequence.tokens.empty()) packer.push(std::move(sequence));
    } catch (const Error& error) {
      fail(ErrorKind::kRecord, "sequence {}: {}", i, error.what());
    }
    while (auto batch = packer.next()) batches.push_back(std::move(*batch));
  }
  packer.finish();
  while (auto batch = packer.next()) batches.push_back(std::move(*batch));

  const size_t n_batches = batches.size();
  std::jthread feeder([&] {
    for (MicroBatch& batch : batches) {
      if (!impl_->pipeline->push(std::move(batch))) return;
    }
  });
  for (size_t b = 0; b < n_batches; ++b) {
    const auto result = impl_->pipeline->pop();
    if (!result) break;  // cannot happen: the pipeline is never finished
    const MicroBatch& batch = result->batch;
    for (int64_t s = 0; s < batch.n_seqs(); ++s) {
      const auto first = static_cast<size_t>(batch.cu_seqlens[s]) * width;
      const auto last = static_cast<size_t>(batch.cu_seqlens[s + 1]) * width;
      results[batch.ordinals[s]].values =
          unmask_rows(std::span<const float>(result->rows).subspan(first, last - first),
                      mask_of(batch.ordinals[s]), width);
    }
  }
  return results;
}

T5EncoderModel T5EncoderModel::from_pretrained(const std::string& folder,
                                               const LoadOptions& options) {
  return {folder, options, "t5"};
}

MT5EncoderModel MT5EncoderModel::from_pretrained(const std::string& folder,
                                                 const LoadOptions& options) {
  return {folder, options, "mt5"};
}

UMT5EncoderModel UMT5EncoderModel::from_pretrained(const std::string& folder,
                                                   const LoadOptions& options) {
  return {folder, options, "umt5"};
}

}  // namespace quintet
