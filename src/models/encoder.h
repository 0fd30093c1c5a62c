// What the pipeline and the planner need to know of an encoder model: its config, what its blocks
// cost, and how to build the part of it that runs on one device.
#ifndef QUINTET_MODELS_ENCODER_H_
#define QUINTET_MODELS_ENCODER_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "backends/device.h"
#include "core/block_cost.h"
#include "core/micro_batch.h"
#include "core/tensor.h"
#include "weights/checkpoint.h"

namespace quintet {

// A contiguous run of blocks on one device. The first stage embeds, the last applies the final
// norm.
class EncoderStage {
 public:
  virtual ~EncoderStage() = default;
  // hidden: [n_tokens, d_model] on this stage's device, from the stage before, updated in place;
  // an empty tensor for the first stage, which makes it from batch.tokens. Returns hidden. Throws
  // Error(kRecord) on a token outside the vocabulary.
  virtual Tensor forward(const MicroBatch& batch, Tensor hidden) = 0;
};

struct StageRange {
  int64_t first_block = 0;
  int64_t last_block = 0;  // one past the last
};

class EncoderModel {
 public:
  virtual ~EncoderModel() = default;
  virtual std::string model_type() const = 0;  // "t5", "mt5", "umt5"
  virtual int64_t n_layers() const = 0;
  virtual int64_t d_model() const = 0;
  virtual int64_t vocab_size() const = 0;  // rows of the embedding table
  virtual int64_t pad_token_id() const = 0;
  virtual StackCost cost(DType dtype) const = 0;
  // One line per fact for `quintet info`: ("d_ff", "16384"), ...
  virtual std::vector<std::pair<std::string, std::string>> describe() const = 0;
  // Dtype of the matrices as stored in the checkpoint; float32 where they are not all of one.
  virtual DType stored_dtype(const Checkpoint& checkpoint) const = 0;
  // Checks that every tensor the encoder needs is there with the shape the config implies, reading
  // headers only. Throws Error(kFile) naming the tensor, found and expected. Returns notes about
  // tensors that are there and not used.
  virtual std::vector<std::string> check(const Checkpoint& checkpoint) const = 0;
  virtual std::unique_ptr<EncoderStage> load_stage(const Checkpoint& checkpoint, Device& device,
                                                   StageRange blocks, DType dtype) const = 0;
};

// Reads config.json of a checkpoint folder. Throws Error(kFile) naming the key at fault, or the
// model types that are known; Error(kIo) where there is no such file.
std::unique_ptr<EncoderModel> load_encoder_model(const std::filesystem::path& folder);

// The same from config.json's object; `where` is its file's name for messages.
std::unique_ptr<EncoderModel> make_encoder_model(const nlohmann::json& config,
                                                 const std::string& where);

}  // namespace quintet

#endif  // QUINTET_MODELS_ENCODER_H_
