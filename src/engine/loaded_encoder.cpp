#include "engine/loaded_encoder.h"

#include <utility>

#include "core/error.h"

namespace quintet {

EncoderFolder EncoderFolder::open(const std::filesystem::path& folder) {
  if (!std::filesystem::is_directory(folder)) {
    fail(ErrorKind::kIo,
         "{}: no such folder; a checkpoint as Hugging Face ships it is needed on this machine, "
         "nothing is downloaded",
         folder.string());
  }
  EncoderFolder opened;
  opened.model = load_encoder_model(folder);
  opened.checkpoint = Checkpoint::open(folder);
  opened.notes = opened.model->check(*opened.checkpoint);
  return opened;
}

LoadedEncoder::LoadedEncoder(const EncoderFolder& folder, const DeviceMap& device_map, DType dtype,
                             OpenOptions options)
    : d_model_(folder.model->d_model()) {
  for (const auto& [name, blocks] : device_map) devices_.push_back(open_device(name, options));
  for (size_t i = 0; i < device_map.size(); ++i) {
    const auto& blocks = device_map[i].second;
    PipelineStage stage;
    stage.device = devices_[i].get();
    stage.range = {.first_block = blocks.front(), .last_block = blocks.back() + 1};
    stage.blocks = folder.model->load_stage(*folder.checkpoint, *devices_[i], stage.range, dtype);
    stages_.push_back(std::move(stage));
  }
}

std::unique_ptr<Pipeline> LoadedEncoder::start(const PipelineOptions& options) {
  return std::make_unique<Pipeline>(std::move(stages_), d_model_, options);
}

}  // namespace quintet
