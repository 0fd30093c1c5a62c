// The two ends of a decoder: tokens are looked up in the embedding table, and the head turns hidden
// states into logits. Often both are one matrix, of which a stage that has both ends keeps one
// copy.
#ifndef QUINTET_MODELS_VOCABULARY_H_
#define QUINTET_MODELS_VOCABULARY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backends/device.h"
#include "core/block_cost.h"
#include "core/step_batch.h"
#include "core/tensor.h"
#include "models/weight_scope.h"
#include "weights/checkpoint.h"

namespace quintet {

struct VocabularyNames {
  std::string embedding;
  std::string head;  // empty: none
};

// Whether head and embedding are the same numbers in the file: one name, or one storage under two.
bool is_tied(const Checkpoint& checkpoint, const VocabularyNames& names);

class Vocabulary {
 public:
  struct Ends {
    bool first = false;  // the stage looks tokens up
    bool last = false;   // the stage has the head, where names has one
  };

  // `weights` has no prefix; shape: [vocab_size, d_model].
  Vocabulary(const WeightScope& weights, const Checkpoint& checkpoint, const VocabularyNames& names,
             const Shape& shape, Ends ends);

  bool looks_up() const { return table_ || (ties_ && head_); }

  // Of a step's rows: [n_rows, d_model]. Throws Error(kRecord) on a token outside the vocabulary.
  Tensor look_up(Device& device, const StepBatch& step) const;

  // scale * head(hidden[selected]): [selected.size(), vocab_size]. Throws Error(kUsage) without a
  // head.
  Tensor logits(Device& device, const Tensor& hidden, const std::vector<int32_t>& selected,
                float scale) const;

 private:
  int64_t vocab_size_;
  bool ties_ = false;  // both ends are here, and head_ is the table too
  Tensor table_;
  std::unique_ptr<Weight> head_;
};

// Adds what the ends' matrices cost. shape: [vocab_size, d_model].
void add_vocabulary_cost(const Checkpoint& checkpoint, const VocabularyNames& names,
                         const Shape& shape, DType dtype, StackCost& cost);

// The ids of a step's rows: the prompts', then the steps'.
std::vector<int32_t> row_tokens(const StepBatch& step);
std::vector<int32_t> row_positions(const StepBatch& step);

}  // namespace quintet

#endif  // QUINTET_MODELS_VOCABULARY_H_
