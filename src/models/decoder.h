// What the ring of stages and the planner need to know of a decoder: its config, what its blocks
// cost, and how to build the part of it that runs on one device. T5's decoder reads an encoder's
// output, GPT-2 is a decoder alone.
#ifndef QUINTET_MODELS_DECODER_H_
#define QUINTET_MODELS_DECODER_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "backends/device.h"
#include "core/block_cost.h"
#include "core/step_batch.h"
#include "core/tensor.h"
#include "models/encoder.h"
#include "models/token_ids.h"
#include "weights/checkpoint.h"

namespace quintet {

// Pages that each block's caches have; page numbers are the same on every stage. No self pages: no
// row is kept, as in scoring.
struct CachePages {
  int64_t self = 0;
  int64_t cross = 0;
};

// A contiguous run of decoder blocks on one device. The first stage embeds, the last applies the
// final norm and has the head, where the model has one.
class DecoderStage {
 public:
  virtual ~DecoderStage() = default;

  // Makes the caches, all of their memory at once; what they held is gone. Throws Error(kMemory).
  virtual void reserve(const CachePages& pages) = 0;

  // source: the encoder's rows that come with this step, [source_slots.size(), d_model of the
  // encoder] on this device, or empty. hidden: [n_rows, d_model] on this device from the stage
  // before, updated in place; an empty tensor for the first stage. Throws Error(kRecord) on a token
  // outside the vocabulary or a position that the model does not have.
  virtual Tensor forward(const StepBatch& step, const Tensor& source, Tensor hidden) = 0;

  // Last stage: [selected.size(), vocab_size] of the rows `selected` of what forward() returned.
  // Throws Error(kUsage) where the stage was loaded without a head.
  virtual Tensor logits(const Tensor& hidden, const std::vector<int32_t>& selected) = 0;
};

class DecoderModel {
 public:
  virtual ~DecoderModel() = default;
  virtual std::string model_type() const = 0;  // "t5", "mt5", "umt5", "gpt2"
  virtual bool reads_encoder() const = 0;      // has cross-attention
  virtual int64_t n_layers() const = 0;
  virtual int64_t d_model() const = 0;
  virtual int64_t vocab_size() const = 0;     // columns of the logits
  virtual int64_t max_positions() const = 0;  // of one sequence; 0: no bound
  virtual KvShape kv_shape() const = 0;
  virtual TokenIds token_ids() const = 0;
  // with_head: for logits; without: hidden states (T5Model, GPT2Model). The checkpoint's headers
  // tell whether the head is a matrix of its own or the embedding table.
  virtual StackCost cost(const Checkpoint& checkpoint, DType dtype, bool with_head) const = 0;
  virtual std::vector<std::pair<std::string, std::string>> describe() const = 0;
  virtual DType stored_dtype(const Checkpoint& checkpoint) const = 0;
  // As EncoderModel::check.
  virtual std::vector<std::string> check(const Checkpoint& checkpoint, bool with_head) const = 0;
  virtual std::unique_ptr<DecoderStage> load_stage(const Checkpoint& checkpoint, Device& device,
                                                   StageRange blocks, DType dtype,
                                                   bool with_head) const = 0;
};

// Reads config.json of a checkpoint folder: a T5-family or GPT-2 model. Throws Error(kFile) naming
// the key at fault or the model types that are known, and where an encoder-only checkpoint has no
// decoder; Error(kIo) where there is no such file.
std::unique_ptr<DecoderModel> load_decoder_model(const std::filesystem::path& folder);

std::unique_ptr<DecoderModel> make_decoder_model(const nlohmann::json& config,
                                                 const std::string& where);

}  // namespace quintet

#endif  // QUINTET_MODELS_DECODER_H_
