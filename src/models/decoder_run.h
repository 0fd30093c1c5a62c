// Runs decoders over made-up steps, for tests.
#ifndef QUINTET_MODELS_DECODER_RUN_H_
#define QUINTET_MODELS_DECODER_RUN_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "backends/device.h"
#include "models/decoder.h"
#include "models/step_maker.h"

namespace quintet {

using Values = std::vector<float>;

inline Values download(Device& device, const Tensor& tensor) {
  Values values(static_cast<size_t>(tensor.rows() * tensor.cols()));
  if (!values.empty()) device.download(tensor, values.data());
  return values;
}

// A decoder's stages, all on one device, and numbers for an encoder's output.
class DecoderRun {
 public:
  // ends: one past the last block of each stage but the last.
  DecoderRun(const DecoderModel& model, const Checkpoint& checkpoint, Device& device,
             std::vector<int64_t> ends = {}, CachePages pages = {.self = 64, .cross = 64})
      : device_(device), d_model_(model.d_model()) {
    ends.push_back(model.n_layers());
    int64_t first = 0;
    for (const int64_t end : ends) {
      stages_.push_back(model.load_stage(checkpoint, device, {first, end}, DType::kFloat32, true));
      stages_.back()->reserve(pages);
      first = end;
    }
  }

  // Logits of each row of the step; sources: seeds of the encoder's rows that come with it.
  std::vector<Values> operator()(const StepBatch& step, const std::vector<int32_t>& sources = {}) {
    Tensor hidden;
    const Tensor source = sources.empty() ? Tensor() : source_rows(sources);
    for (auto& stage : stages_) hidden = stage->forward(step, source, hidden);
    if (step.n_rows() == 0) return {};
    const Tensor logits = stages_.back()->logits(hidden, step.selected);
    const Values all = download(device_, logits);
    std::vector<Values> rows;
    for (auto row = all.begin(); row != all.end(); row += logits.cols()) {
      rows.emplace_back(row, row + logits.cols());
    }
    return rows;
  }

 private:
  Tensor source_rows(const std::vector<int32_t>& seeds) {
    Values values;
    for (const int32_t seed : seeds) {
      for (int64_t i = 0; i < d_model_; ++i) {
        values.push_back(static_cast<float>((seed * 31 + i * 17) % 23 - 11) / 8);
      }
    }
    Tensor rows = device_.allocate(static_cast<int64_t>(seeds.size()), d_model_);
    device_.upload(values.data(), rows);
    return rows;
  }

  Device& device_;
  int64_t d_model_;
  std::vector<std::unique_ptr<DecoderStage>> stages_;
};

}  // namespace quintet

#endif  // QUINTET_MODELS_DECODER_RUN_H_
