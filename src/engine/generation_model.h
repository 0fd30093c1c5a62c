// A checkpoint that generates, opened; and the same laid out over devices with its weights loaded,
// ready to be driven by a ring.
#ifndef QUINTET_ENGINE_GENERATION_MODEL_H_
#define QUINTET_ENGINE_GENERATION_MODEL_H_

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "backends/device.h"
#include "backends/registry.h"
#include "models/decoder.h"
#include "models/encoder.h"
#include "pipeline/ring.h"
#include "quintet/device_map.h"
#include "weights/checkpoint.h"

namespace quintet {

// Whether config.json says that there is no encoder (GPT-2).
bool is_decoder_alone(const std::filesystem::path& folder);

// Config and file headers: no weight has been read.
struct GenerationFolder {
  std::unique_ptr<EncoderModel> encoder;  // null: a decoder alone (GPT-2)
  std::unique_ptr<DecoderModel> decoder;
  std::unique_ptr<Checkpoint> checkpoint;
  bool with_head = true;           // a language model: it gives logits
  std::vector<std::string> notes;  // tensors that are there and not used, and the like

  // Throws Error(kFile / kIo) that names file, key, found and expected.
  static GenerationFolder open(const std::filesystem::path& folder, bool with_head = true);
  DType stored_dtype() const;  // of both stacks; float32 where they differ
};

// Devices, and on each its blocks of either stack. The order of members is the order of destruction
// in reverse: stages go before the devices that hold their weights.
class LoadedGenerationModel {
 public:
  // The maps have passed assert_device_map and name devices canonically. Stages are loaded one
  // after the other, each with all threads of its device. There are no caches yet.
  LoadedGenerationModel(const GenerationFolder& folder, const StackMaps& maps, DType dtype,
                        OpenOptions options);

  // Makes the caches of every decoder stage anew; nothing may be under way in the ring.
  void reserve(const CachePages& pages);
  // A ring over the stages, which it takes along and must be gone before this; called once.
  std::unique_ptr<Ring> start(RingOptions options);
  const std::vector<OpenedDevice>& devices() const { return devices_; }

 private:
  RingDevice& stage_on(const std::string& device, OpenOptions options);

  std::vector<OpenedDevice> devices_;
  std::vector<RingDevice> stages_;
  std::vector<DecoderStage*> decoder_stages_;  // those of stages_, which the ring takes along
};

}  // namespace quintet

#endif  // QUINTET_ENGINE_GENERATION_MODEL_H_
