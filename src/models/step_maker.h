// Makes the steps of a few sequences over pages that it counts out itself, for tests.
#ifndef QUINTET_MODELS_STEP_MAKER_H_
#define QUINTET_MODELS_STEP_MAKER_H_

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/step_batch.h"

namespace quintet {

class StepMaker {
 public:
  // A new sequence; its source's rows come with the next step, behind those of earlier ones.
  size_t start(int32_t source_length = 0) {
    Sequence sequence;
    sequence.source_length = source_length;
    for (int32_t i = 0; i < source_length; ++i) {
      if (i % kPageTokens == 0) sequence.cross_pages.push_back(n_cross_pages_++);
      batch_.source_slots.push_back(slot_of(sequence.cross_pages, i));
    }
    sequences_.push_back(std::move(sequence));
    return sequences_.size() - 1;
  }

  // A sequence that goes on from where `parent` stands: full pages are shared, the last is copied.
  size_t fork(size_t parent) {
    Sequence sequence = sequences_[parent];
    const int32_t in_last = sequence.length % kPageTokens;
    if (in_last != 0) {
      const int32_t page = n_self_pages_++;
      batch_.copies.push_back(
          {.from = sequence.self_pages.back(), .to = page, .n_tokens = in_last});
      sequence.self_pages.back() = page;
    }
    sequences_.push_back(std::move(sequence));
    return sequences_.size() - 1;
  }

  // Prompts of a step come before its single rows. positions: 0, 1, ... where none are given.
  void prompt(size_t index, const std::vector<int32_t>& tokens, bool keep = true,
              const std::vector<int32_t>& positions = {}) {
    MicroBatch& prompts = batch_.prompts;
    if (prompts.cu_seqlens.empty()) prompts.cu_seqlens = {0};
    Sequence& sequence = sequences_[index];
    for (size_t i = 0; i < tokens.size(); ++i) {
      const auto at = static_cast<int32_t>(i);
      prompts.tokens.push_back(tokens[i]);
      prompts.positions.push_back(positions.empty() ? at : positions[i]);
      prompts.max_len = std::max(prompts.max_len, prompts.positions.back() + 1);
      batch_.slots.push_back(keep ? append(sequence) : -1);
      attend(sequence.cross_pages, sequence.source_length, batch_.cross);
    }
    prompts.cu_seqlens.push_back(static_cast<int32_t>(prompts.tokens.size()));
    prompts.ordinals.push_back(index);
  }

  void step(size_t index, int32_t token) {
    Sequence& sequence = sequences_[index];
    batch_.tokens.push_back(token);
    batch_.positions.push_back(sequence.length);
    batch_.slots.push_back(append(sequence));
    attend(sequence.self_pages, sequence.length, batch_.self);
    attend(sequence.cross_pages, sequence.source_length, batch_.cross);
  }

  // The step so far, all of its rows selected; the next begins.
  StepBatch take() {
    for (int32_t row = 0; row < batch_.n_rows(); ++row) batch_.selected.push_back(row);
    return std::exchange(batch_, {});
  }

 private:
  struct Sequence {
    std::vector<int32_t> self_pages;
    std::vector<int32_t> cross_pages;
    int32_t length = 0;
    int32_t source_length = 0;
  };

  static int32_t slot_of(const std::vector<int32_t>& pages, int32_t index) {
    return pages[static_cast<size_t>(index / kPageTokens)] * kPageTokens + index % kPageTokens;
  }

  int32_t append(Sequence& sequence) {
    if (sequence.length % kPageTokens == 0) sequence.self_pages.push_back(n_self_pages_++);
    return slot_of(sequence.self_pages, sequence.length++);
  }

  // A table for every row.
  static void attend(const std::vector<int32_t>& pages, int32_t n_keys, PageTable& tables) {
    tables.table.push_back(static_cast<int32_t>(tables.begin.size()) - 1);
    tables.n_keys.push_back(n_keys);
    tables.pages.insert(tables.pages.end(), pages.begin(), pages.end());
    tables.begin.push_back(static_cast<int32_t>(tables.pages.size()));
  }

  std::vector<Sequence> sequences_;
  StepBatch batch_;
  int32_t n_self_pages_ = 0;
  int32_t n_cross_pages_ = 0;
};

}  // namespace quintet

#endif  // QUINTET_MODELS_STEP_MAKER_H_
