// T5-family encoders from Hugging Face checkpoint folders, split by layers over devices:
//
//   auto model = quintet::T5EncoderModel::from_pretrained("prot_t5_xl_half_uniref50-enc");
//   model.parallelize();  // evenly over all devices of its kind
//   auto states = model.encode({{3, 17, 9, 1}, {5, 1}});
//
// A model is used from one thread at a time. On CPU devices the results are the same bits whatever
// the device map, the number of threads and the other sequences of the call.
#ifndef QUINTET_ENCODER_H_
#define QUINTET_ENCODER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "quintet/device_map.h"
#include "quintet/error.h"

namespace quintet {

struct LoadOptions {
  std::string device = "cpu:0";         // where the whole model goes, unless there is a map
  std::optional<DeviceMap> device_map;  // which blocks go where
  std::string dtype;                    // of the weights: float32, bfloat16, float16; "": as stored
  int threads = 0;                      // of each CPU device; 0: one per core
  int64_t tokens_per_batch = 512;       // a longer sequence is a micro-batch of its own
};

// Last hidden states of one sequence, after the final norm.
struct HiddenStates {
  int64_t n_tokens = 0;
  int64_t d_model = 0;
  std::vector<float> values;  // [n_tokens, d_model]; rows of masked tokens are zero
};

struct DeviceMemory {
  std::string device;
  size_t used = 0;  // bytes held by this model
};

// What the classes below share.
class PretrainedEncoder {
 public:
  PretrainedEncoder(PretrainedEncoder&&) noexcept;
  PretrainedEncoder& operator=(PretrainedEncoder&&) noexcept;
  virtual ~PretrainedEncoder();

  int64_t n_layers() const;
  int64_t d_model() const;
  int64_t vocab_size() const;

  // Spreads the blocks evenly over all devices of the kind that the model is on (on a part of a
  // divided device, "opencl:0/2[0]": over its parts), or as `device_map` says. The
  // weights are read again from the checkpoint; what a device held before is freed. Throws
  // Error(kUsage / kDevice) and leaves the model as it was.
  void parallelize();
  void parallelize(const DeviceMap& device_map);
  // Back to one device, the first of the map; every byte on the others is freed.
  void deparallelize();
  bool is_parallel() const;
  DeviceMap device_map() const;  // as it is now
  std::vector<DeviceMemory> memory() const;

  // input_ids: one vector of ids per sequence, of any lengths. attention_mask: empty, or one vector
  // of 0 / 1 per sequence. Throws Error(kRecord) that names the sequence on an id outside the
  // vocabulary or a mask of another length.
  std::vector<HiddenStates> encode(const std::vector<std::vector<int64_t>>& input_ids,
                                   const std::vector<std::vector<uint8_t>>& attention_mask = {});

 protected:
  struct Impl;
  PretrainedEncoder(const std::string& folder, const LoadOptions& options,
                    const std::string& model_type);

 private:
  std::unique_ptr<Impl> impl_;
};

// model_type "t5": T5, T5 v1.1, flan, ByT5, ProtT5, ProstT5, Ankh.
class T5EncoderModel : public PretrainedEncoder {
 public:
  static T5EncoderModel from_pretrained(const std::string& folder, const LoadOptions& options = {});

 private:
  using PretrainedEncoder::PretrainedEncoder;
};

// model_type "mt5".
class MT5EncoderModel : public PretrainedEncoder {
 public:
  static MT5EncoderModel from_pretrained(const std::string& folder,
                                         const LoadOptions& options = {});

 private:
  using PretrainedEncoder::PretrainedEncoder;
};

// model_type "umt5": a relative bias in every block.
class UMT5EncoderModel : public PretrainedEncoder {
 public:
  static UMT5EncoderModel from_pretrained(const std::string& folder,
                                          const LoadOptions& options = {});

 private:
  using PretrainedEncoder::PretrainedEncoder;
};

}  // namespace quintet

#endif  // QUINTET_ENCODER_H_
