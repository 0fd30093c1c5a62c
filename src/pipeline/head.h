// What leaves the last decoder stage of a step: not logits, unless they are asked for, but what was
// chosen from them on the device. Private to the ring.
#ifndef QUINTET_PIPELINE_HEAD_H_
#define QUINTET_PIPELINE_HEAD_H_

#include <cstdint>
#include <vector>

#include "backends/device.h"
#include "core/tensor.h"
#include "models/decoder.h"
#include "pipeline/ring.h"

namespace quintet {

class Head {
 public:
  Head(DecoderStage& stage, Device& device) : stage_(stage), device_(device) {}

  // hidden: what the stage's forward() returned. Logits of at most 64 rows or 32 MiB, whichever is
  // more, exist at a time.
  StepResult run(const Tensor& hidden, const std::vector<int32_t>& selected,
                 const LogitRequest& request);

 private:
  struct Tile;
  void run_tile(const Tensor& hidden, const std::vector<int32_t>& selected,
                const LogitRequest& request, Tile tile, StepResult& result);
  void copy_hidden(const Tensor& hidden, const std::vector<int32_t>& selected, StepResult& result);
  int64_t rows_per_tile() const;

  DecoderStage& stage_;
  Device& device_;
  int64_t vocab_size_ = 0;  // once it is known
};

}  // namespace quintet

#endif  // QUINTET_PIPELINE_HEAD_H_
