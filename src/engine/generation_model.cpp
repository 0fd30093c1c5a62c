#include "engine/generation_model.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.h"
#include "core/json.h"

namespace quintet {
namespace {

StageRange range_of(const std::vector<int64_t>& blocks) {
  return {.first_block = blocks.front(), .last_block = blocks.back() + 1};
}

}  // namespace

bool is_decoder_alone(const std::filesystem::path& folder) {
  const auto path = folder / "config.json";
  if (!std::filesystem::exists(path)) return false;
  const nlohmann::json config = parse_json_file(path);
  return config.is_object() && config.contains("model_type") && config["model_type"] == "gpt2";
}

GenerationFolder GenerationFolder::open(const std::filesystem::path& folder, bool with_head) {
  if (!std::filesystem::is_directory(folder)) {
    fail(ErrorKind::kIo,
         "{}: no such folder; a checkpoint as Hugging Face ships it is needed on this machine, "
         "nothing is downloaded",
         folder.string());
  }
  GenerationFolder opened;
  opened.with_head = with_head;
  opened.decoder = load_decoder_model(folder);
  if (opened.decoder->reads_encoder()) opened.encoder = load_encoder_model(folder);
  opened.checkpoint = Checkpoint::open(folder);
  opened.notes = opened.decoder->check(*opened.checkpoint, with_head);
  if (opened.encoder != nullptr) opened.encoder->check(*opened.checkpoint);
  return opened;
}

DType GenerationFolder::stored_dtype() const {
  const DType dtype = decoder->stored_dtype(*checkpoint);
  if (encoder != nullptr && encoder->stored_dtype(*checkpoint) != dtype) return DType::kFloat32;
  return dtype;
}

LoadedGenerationModel::LoadedGenerationModel(const GenerationFolder& folder, const StackMaps& maps,
                                             DType dtype, OpenOptions options) {
  for (const auto& [name, blocks] : maps.encoder) {
    RingDevice& stage = stage_on(name, options);
    stage.encoder_range = range_of(blocks);
    stage.encoder =
        folder.encoder->load_stage(*folder.checkpoint, *stage.device, stage.encoder_range, dtype);
  }
  for (const auto& [name, blocks] : maps.decoder) {
    RingDevice& stage = stage_on(name, options);
    stage.decoder_range = range_of(blocks);
    stage.decoder = folder.decoder->load_stage(*folder.checkpoint, *stage.device,
                                               stage.decoder_range, dtype, folder.with_head);
    decoder_stages_.push_back(stage.decoder.get());
  }
}

void LoadedGenerationModel::reserve(const CachePages& pages) {
  for (DecoderStage* stage : decoder_stages_) stage->reserve(pages);
}

RingDevice& LoadedGenerationModel::stage_on(const std::string& device, OpenOptions options) {
  const auto found = std::ranges::find_if(
      stages_, [&](const RingDevice& stage) { return stage.device->name() == device; });
  if (found != stages_.end()) return *found;
  devices_.push_back(open_device(device, options));
  stages_.emplace_back().device = devices_.back().get();
  return stages_.back();
}

std::unique_ptr<Ring> LoadedGenerationModel::start(RingOptions options) {
  return std::make_unique<Ring>(std::move(stages_), options);
}

}  // namespace quintet
