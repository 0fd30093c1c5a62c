// For tests: a language model whose logits are a hash of the last tokens, as
// tests/fixtures/generation/make.py has it, and what a device does with them for a search.
#ifndef QUINTET_GENERATION_FAKE_LANGUAGE_MODEL_H_
#define QUINTET_GENERATION_FAKE_LANGUAGE_MODEL_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "generation/search.h"

namespace quintet::testing {

inline uint64_t mix(uint64_t x) {  // splitmix64
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

struct FakeLanguageModel {
  uint64_t seed = 0;
  size_t order = 1;  // tokens that the logits depend on
  int64_t vocab_size = 0;

  std::vector<float> logits(std::span<const int32_t> ids) const {
    uint64_t state = mix(seed);
    for (const int32_t token : ids.last(std::min(order, ids.size()))) {
      state = mix(state ^ (static_cast<uint64_t>(token) + 1));
    }
    std::vector<float> row;
    row.reserve(static_cast<size_t>(vocab_size));
    for (uint64_t v = 0; v < static_cast<uint64_t>(vocab_size); ++v) {
      const auto bits = static_cast<int64_t>(mix(state + v) >> 40);
      row.push_back(static_cast<float>(static_cast<double>(bits - (int64_t{1} << 23)) * 0x1p-21));
    }
    return row;
  }
};

struct OwnedCandidates {
  std::vector<int32_t> ids;
  std::vector<float> values;
};

inline void log_softmax(std::vector<float>& row) {
  const float largest = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (const float x : row) sum += std::exp(static_cast<double>(x) - largest);
  for (float& x : row) x = static_cast<float>(x - largest - std::log(sum));
}

inline void edit(std::vector<float>& row, const LogitEdit& edit) {
  float& x = row.at(static_cast<size_t>(edit.token));
  switch (edit.kind) {
    case LogitEdit::Kind::kSet:
      x = edit.value;
      break;
    case LogitEdit::Kind::kPenalise:
      x = x < 0 ? x * edit.value : x / edit.value;
      break;
    case LogitEdit::Kind::kFillRow:
      std::fill(row.begin(), row.end(), edit.value);
      break;
  }
}

inline OwnedCandidates best(const std::vector<float>& row, int64_t top_k) {
  OwnedCandidates found;
  found.ids.resize(row.size());
  std::iota(found.ids.begin(), found.ids.end(), 0);
  std::stable_sort(found.ids.begin(), found.ids.end(), [&row](int32_t a, int32_t b) {
    return row[static_cast<size_t>(a)] > row[static_cast<size_t>(b)];
  });
  found.ids.resize(static_cast<size_t>(top_k));
  found.values.reserve(found.ids.size());
  for (const int32_t id : found.ids) found.values.push_back(row[static_cast<size_t>(id)]);
  return found;
}

// What a device answers for rows that hold these ids.
inline std::vector<OwnedCandidates> answer(const FakeLanguageModel& model,
                                           const SearchRequest& request,
                                           const std::vector<std::vector<int32_t>>& rows) {
  std::vector<std::vector<float>> logits;
  logits.reserve(rows.size());
  for (const auto& row : rows) {
    logits.push_back(model.logits(row));
    if (request.log_softmax) log_softmax(logits.back());
  }
  for (const auto& one : request.edits) edit(logits.at(static_cast<size_t>(one.row)), one);
  std::vector<OwnedCandidates> answers;
  answers.reserve(rows.size());
  for (const auto& row : logits) answers.push_back(best(row, request.top_k));
  return answers;
}

// One step of a search; `rows` become those of the next step. False where it has finished.
inline bool step(const FakeLanguageModel& model, Search& search,
                 std::vector<std::vector<int32_t>>& rows) {
  const auto answers = answer(model, search.request(), rows);
  std::vector<Candidates> candidates;
  candidates.reserve(answers.size());
  for (const auto& one : answers) candidates.push_back({one.ids, one.values});
  std::vector<std::vector<int32_t>> next;
  for (const auto& row : search.advance(candidates)) {
    next.push_back(rows.at(static_cast<size_t>(row.parent)));
    next.back().push_back(row.token);
  }
  rows = std::move(next);
  return !rows.empty();
}

inline std::vector<Generated> run(const FakeLanguageModel& model, Search& search,
                                  const std::vector<int32_t>& prompt) {
  std::vector<std::vector<int32_t>> rows = {prompt};
  while (step(model, search, rows)) {
  }
  return search.results();
}

}  // namespace quintet::testing

#endif  // QUINTET_GENERATION_FAKE_LANGUAGE_MODEL_H_
