// An encoder's checkpoint folder, opened; and the encoder laid out over devices with its weights
// loaded, ready to be driven by a pipeline.
#ifndef QUINTET_ENGINE_LOADED_ENCODER_H_
#define QUINTET_ENGINE_LOADED_ENCODER_H_

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "backends/registry.h"
#include "models/encoder.h"
#include "pipeline/pipeline.h"
#include "quintet/device_map.h"
#include "weights/checkpoint.h"

namespace quintet {

// Config and file headers: no weight has been read.
struct EncoderFolder {
  std::unique_ptr<EncoderModel> model;
  std::unique_ptr<Checkpoint> checkpoint;
  std::vector<std::string> notes;  // tensors that are there and not used, and the like

  // Throws Error(kFile / kIo) that names file, key, found and expected.
  static EncoderFolder open(const std::filesystem::path& folder);
};

// Devices, and on each the blocks that the map gives it. The order of members is the order of
// destruction in reverse: stages go before the devices that hold their weights.
class LoadedEncoder {
 public:
  // `device_map` has passed assert_device_map. Stages are loaded one after the other, each with all
  // threads of its device.
  LoadedEncoder(const EncoderFolder& folder, const DeviceMap& device_map, DType dtype,
                OpenOptions options);

  // A pipeline over the stages, which it takes along; called once.
  std::unique_ptr<Pipeline> start(const PipelineOptions& options);
  const std::vector<OpenedDevice>& devices() const { return devices_; }

 private:
  int64_t d_model_;
  std::vector<OpenedDevice> devices_;
  std::vector<PipelineStage> stages_;
};

}  // namespace quintet

#endif  // QUINTET_ENGINE_LOADED_ENCODER_H_
