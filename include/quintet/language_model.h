// T5-family sequence-to-sequence models and GPT-2 from Hugging Face checkpoint folders, split by
// layers over devices:
//
//   auto model = quintet::T5ForConditionalGeneration::from_pretrained("flan-t5-base");
//   model.parallelize();  // both stacks evenly over all devices of its kind
//   auto results = model.generate({{3, 17, 9, 1}}, {}, {.max_new_tokens = 20});
//
// A model is used from one thread at a time. On CPU devices the results are the same bits whatever
// the device map, the number of threads and the other sequences of the call.
#ifndef QUINTET_LANGUAGE_MODEL_H_
#define QUINTET_LANGUAGE_MODEL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "quintet/device_map.h"
#include "quintet/encoder.h"
#include "quintet/error.h"

namespace quintet {

// Rows of numbers of one sequence: logits [n_rows, vocab_size], or hidden states [n_rows, d_model]
// of models without a head. Rows of masked ids are zero.
struct OutputRows {
  int64_t n_rows = 0;
  int64_t width = 0;
  std::vector<float> values;  // [n_rows, width]
};

// How to generate, under the names of Hugging Face's generation config. What is not given comes
// from the folder's generation_config.json, else config.json, else that library's defaults.
struct GenerationOptions {
  std::optional<int64_t> max_new_tokens = {};
  std::optional<int64_t> min_new_tokens = {};
  std::optional<int64_t> max_length = {};
  std::optional<int64_t> num_beams = {};
  std::optional<int64_t> num_return_sequences = {};
  std::optional<bool> do_sample = {};
  std::optional<double> temperature = {};
  std::optional<int64_t> top_k = {};
  std::optional<double> top_p = {};
  std::optional<double> repetition_penalty = {};
  std::optional<int64_t> no_repeat_ngram_size = {};
  std::optional<double> length_penalty = {};
  std::optional<uint64_t> seed = {};  // of sampling
  std::string more = {};              // any others, as a JSON object: {"min_p": 0.1}
  int64_t batch_size = 32;            // sequences that make their steps together
};

struct GeneratedSequence {
  std::vector<int32_t> ids;     // the new tokens, up to and with the first eos
  std::optional<double> score;  // of beam search
};

// What the classes below share.
class PretrainedLanguageModel {
 public:
  using Ids = std::vector<std::vector<int64_t>>;   // one vector per sequence, of any lengths
  using Mask = std::vector<std::vector<uint8_t>>;  // of 0 / 1 as long as the ids, or none at all

  PretrainedLanguageModel(PretrainedLanguageModel&&) noexcept;
  PretrainedLanguageModel& operator=(PretrainedLanguageModel&&) noexcept;
  virtual ~PretrainedLanguageModel();

  int64_t n_encoder_layers() const;  // 0: a decoder alone
  int64_t n_layers() const;          // of the decoder
  int64_t d_model() const;
  int64_t vocab_size() const;

  // Spreads the blocks of each stack evenly over all devices of the kind that the model is on (on a
  // part of a divided device, "opencl:0/2[0]": over its parts), or as the maps say:
  // one map for every stack, or one for each. The weights are read again from the checkpoint; what
  // a device held before is freed. Throws Error(kUsage / kDevice) and leaves the model as it was.
  void parallelize();
  void parallelize(const DeviceMap& device_map);
  void parallelize(const DeviceMap& encoder_map, const DeviceMap& decoder_map);
  // Back to one device, the first of the (encoder's) map; every byte on the others is freed.
  void deparallelize();
  bool is_parallel() const;
  const DeviceMap& encoder_device_map() const;
  const DeviceMap& device_map() const;  // of the decoder
  std::vector<DeviceMemory> memory() const;

 protected:
  struct Impl;
  PretrainedLanguageModel(const std::string& folder, const LoadOptions& options,
                          const std::string& model_type, bool with_head);

  std::vector<OutputRows> run_forward(const Ids& input_ids, const Mask& attention_mask,
                                      const Ids& decoder_input_ids);
  std::vector<std::vector<GeneratedSequence>> run_generate(const Ids& input_ids,
                                                           const Mask& attention_mask,
                                                           const Ids& decoder_input_ids,
                                                           const GenerationOptions& options);

 private:
  std::unique_ptr<Impl> impl_;
};

// Models with an encoder.
class Seq2SeqModel : public PretrainedLanguageModel {
 public:
  // The rows of decoder_input_ids: hidden states, or of classes "ForConditionalGeneration" logits.
  // Throws Error(kRecord) that names the sequence on an id outside the vocabulary.
  std::vector<OutputRows> forward(const Ids& input_ids, const Mask& attention_mask,
                                  const Ids& decoder_input_ids) {
    return run_forward(input_ids, attention_mask, decoder_input_ids);
  }

 protected:
  using PretrainedLanguageModel::PretrainedLanguageModel;
};

class Seq2SeqGenerator : public Seq2SeqModel {
 public:
  // For each sequence what was asked for, best first. decoder_input_ids: prefixes, or none at all.
  std::vector<std::vector<GeneratedSequence>> generate(const Ids& input_ids,
                                                       const Mask& attention_mask = {},
                                                       const GenerationOptions& options = {},
                                                       const Ids& decoder_input_ids = {}) {
    return run_generate(input_ids, attention_mask, decoder_input_ids, options);
  }

 protected:
  using Seq2SeqModel::Seq2SeqModel;
};

// A decoder alone. Positions count masked ids in forward(), and not in generate(), as in the
// original.
class DecoderOnlyModel : public PretrainedLanguageModel {
 public:
  std::vector<OutputRows> forward(const Ids& input_ids, const Mask& attention_mask = {}) {
    return run_forward(input_ids, attention_mask, {});
  }

 protected:
  using PretrainedLanguageModel::PretrainedLanguageModel;
};

// model_type "t5".
class T5Model : public Seq2SeqModel {
 public:
  static T5Model from_pretrained(const std::string& folder, const LoadOptions& options = {});

 private:
  using Seq2SeqModel::Seq2SeqModel;
};

class T5ForConditionalGeneration : public Seq2SeqGenerator {
 public:
  static T5ForConditionalGeneration from_pretrained(const std::string& folder,
                                                    const LoadOptions& options = {});

 private:
  using Seq2SeqGenerator::Seq2SeqGenerator;
};

// model_type "mt5".
class MT5Model : public Seq2SeqModel {
 public:
  static MT5Model from_pretrained(const std::string& folder, const LoadOptions& options = {});

 private:
  using Seq2SeqModel::Seq2SeqModel;
};

class MT5ForConditionalGeneration : public Seq2SeqGenerator {
 public:
  static MT5ForConditionalGeneration from_pretrained(const std::string& folder,
                                                     const LoadOptions& options = {});

 private:
  using Seq2SeqGenerator::Seq2SeqGenerator;
};

// model_type "umt5".
class UMT5Model : public Seq2SeqModel {
 public:
  static UMT5Model from_pretrained(const std::string& folder, const LoadOptions& options = {});

 private:
  using Seq2SeqModel::Seq2SeqModel;
};

class UMT5ForConditionalGeneration : public Seq2SeqGenerator {
 public:
  static UMT5ForConditionalGeneration from_pretrained(const std::string& folder,
                                                      const LoadOptions& options = {});

 private:
  using Seq2SeqGenerator::Seq2SeqGenerator;
};

// model_type "gpt2".
class GPT2Model : public DecoderOnlyModel {
 public:
  static GPT2Model from_pretrained(const std::string& folder, const LoadOptions& options = {});

 private:
  using DecoderOnlyModel::DecoderOnlyModel;
};

class GPT2LMHeadModel : public DecoderOnlyModel {
 public:
  static GPT2LMHeadModel from_pretrained(const std::string& folder,
                                         const LoadOptions& options = {});
  std::vector<std::vector<GeneratedSequence>> generate(const Ids& input_ids,
                                                       const Mask& attention_mask = {},
                                                       const GenerationOptions& options = {}) {
    return run_generate(input_ids, attention_mask, {}, options);
  }

 private:
  using DecoderOnlyModel::DecoderOnlyModel;
};

}  // namespace quintet

#endif  // QUINTET_LANGUAGE_MODEL_H_
