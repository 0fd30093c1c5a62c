#include "models/vocabulary.h"

#include "core/error.h"
#include "ops/rows.h"

namespace quintet {
namespace {

std::vector<int32_t> joined(const std::vector<int32_t>& first, const std::vector<int32_t>& second) {
  std::vector<int32_t> all(first);
  all.insert(all.end(), second.begin(), second.end());
  return all;
}

}  // namespace

std::vector<int32_t> row_tokens(const StepBatch& step) {
  return joined(step.prompts.tokens, step.tokens);
}

std::vector<int32_t> row_positions(const StepBatch& step) {
  return joined(step.prompts.positions, step.positions);
}

bool is_tied(const Checkpoint& checkpoint, const VocabularyNames& names) {
  if (names.head.empty()) return false;
  if (names.head == names.embedding) return true;
  const HostView* head = checkpoint.find(names.head);
  const HostView* table = checkpoint.find(names.embedding);
  return head != nullptr && table != nullptr && head->data == table->data &&
         head->shape == table->shape && head->dtype == table->dtype;
}

Vocabulary::Vocabulary(const WeightScope& weights, const Checkpoint& checkpoint,
                       const VocabularyNames& names, const Shape& shape, Ends ends)
    : vocab_size_(shape.front()) {
  if (ends.last && !names.head.empty()) head_ = weights.load(names.head, shape);
  if (!ends.first) return;
  ties_ = ends.last && is_tied(checkpoint, names);
  if (!ties_) table_ = weights.load_table(names.embedding, shape);
}

Tensor Vocabulary::look_up(Device& device, const StepBatch& step) const {
  const std::vector<int32_t> ids = row_tokens(step);
  return ties_ ? ops::weight_rows(device, ids, *head_) : ops::embedding(device, ids, table_);
}

Tensor Vocabulary::logits(Device& device, const Tensor& hidden,
                          const std::vector<int32_t>& selected, float scale) const {
  if (!head_) fail(ErrorKind::kUsage, "logits asked of a stage without a head");
  Tensor logits = device.allocate(static_cast<int64_t>(selected.size()), vocab_size_);
  if (logits.empty()) return logits;
  const Tensor rows = ops::gather(device, hidden, selected);
  device.linear(rows, *head_, {.scale = scale}, logits);
  return logits;
}

void add_vocabulary_cost(const Checkpoint& checkpoint, const VocabularyNames& names,
                         const Shape& shape, DType dtype, StackCost& cost) {
  const int64_t params = shape[0] * shape[1];
  const int64_t bytes = params * static_cast<int64_t>(size_of(dtype));
  cost.first_bytes += bytes;
  if (names.head.empty()) return;
  cost.last_bytes += bytes;
  cost.last_params = params;
  cost.last_flops_per_token = 2 * static_cast<double>(params);
  if (is_tied(checkpoint, names)) cost.shared_bytes = bytes;
}

}  // namespace quintet
