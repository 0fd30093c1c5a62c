#include "conformance/subject.h"

#include <utility>

namespace quintet::conformance {
namespace {

template <typename Output>
Rows rows_of(std::vector<Output> outputs) {
  Rows rows;
  for (Output& output : outputs) rows.push_back(std::move(output.values));
  return rows;
}

template <typename Model>
class EncoderSubject : public Subject {
 public:
  explicit EncoderSubject(Model model) : model_(std::move(model)) {}
  void parallelize(const StackMaps& maps) override { model_.parallelize(maps.encoder); }
  void deparallelize() override { model_.deparallelize(); }
  bool is_parallel() const override { return model_.is_parallel(); }
  StackMaps maps() const override { return {.encoder = model_.device_map(), .decoder = {}}; }
  std::vector<DeviceMemory> memory() const override { return model_.memory(); }
  Rows forward(const Inputs& inputs) override {
    return rows_of(model_.encode(inputs.ids, inputs.mask));
  }
  Generated generate(const Inputs&, const GenerationOptions&) override { return {}; }

 private:
  Model model_;
};

template <typename Model>
class LanguageSubject : public Subject {
 public:
  explicit LanguageSubject(Model model) : model_(std::move(model)) {}
  void parallelize(const StackMaps& maps) override {
    if (kCrosses) return model_.parallelize(maps.encoder, maps.decoder);
    model_.parallelize(maps.decoder);
  }
  void deparallelize() override { model_.deparallelize(); }
  bool is_parallel() const override { return model_.is_parallel(); }
  StackMaps maps() const override {
    return {.encoder = model_.encoder_device_map(), .decoder = model_.device_map()};
  }
  std::vector<DeviceMemory> memory() const override { return model_.memory(); }
  Rows forward(const Inputs& inputs) override {
    if constexpr (kCrosses) {
      return rows_of(model_.forward(inputs.ids, inputs.mask, inputs.decoder_ids));
    } else {
      return rows_of(model_.forward(inputs.ids, inputs.mask));
    }
  }
  Generated generate(const Inputs& inputs, const GenerationOptions& options) override {
    if constexpr (requires { model_.generate(inputs.ids, inputs.mask, options); }) {
      return model_.generate(inputs.ids, inputs.mask, options);
    } else {
      return {};
    }
  }

 private:
  static constexpr bool kCrosses = std::is_base_of_v<Seq2SeqModel, Model>;
  Model model_;
};

template <template <typename> class Wrapper, typename Model>
std::unique_ptr<Subject> load(const std::string& folder, const LoadOptions& options) {
  return std::make_unique<Wrapper<Model>>(Model::from_pretrained(folder, options));
}

}  // namespace

const std::vector<ModelClass>& model_classes() {
  static const std::vector<ModelClass> kClasses = {
      {"GPT2Model", "Model", Family::kGpt2, false, true, false, load<LanguageSubject, GPT2Model>},
      {"GPT2LMHeadModel", "LMHead", Family::kGpt2, false, true, true,
       load<LanguageSubject, GPT2LMHeadModel>},
      {"T5Model", "Model", Family::kT5, true, true, false, load<LanguageSubject, T5Model>},
      {"T5ForConditionalGeneration", "Gen", Family::kT5, true, true, true,
       load<LanguageSubject, T5ForConditionalGeneration>},
      {"T5EncoderModel", "Enc", Family::kT5, true, false, false,
       load<EncoderSubject, T5EncoderModel>},
      {"MT5Model", "Model", Family::kMt5, true, true, false, load<LanguageSubject, MT5Model>},
      {"MT5ForConditionalGeneration", "Gen", Family::kMt5, true, true, true,
       load<LanguageSubject, MT5ForConditionalGeneration>},
      {"MT5EncoderModel", "Enc", Family::kMt5, true, false, false,
       load<EncoderSubject, MT5EncoderModel>},
      {"UMT5Model", "Model", Family::kUmt5, true, true, false, load<LanguageSubject, UMT5Model>},
      {"UMT5ForConditionalGeneration", "Gen", Family::kUmt5, true, true, true,
       load<LanguageSubject, UMT5ForConditionalGeneration>},
      {"UMT5EncoderModel", "Enc", Family::kUmt5, true, false, false,
       load<EncoderSubject, UMT5EncoderModel>},
  };
  return kClasses;
}

}  // namespace quintet::conformance
