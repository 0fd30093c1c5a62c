// A model for tests of rings and generators whose hidden states are hashes of all that a row should
// have seen: a wrong page, slot, copy, position, link or source row changes them for good. Next to
// the stages it comes as one plain function.
#ifndef QUINTET_PIPELINE_FAKE_STAGES_H_
#define QUINTET_PIPELINE_FAKE_STAGES_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "link/fake_device.h"
#include "models/decoder.h"
#include "models/encoder.h"

namespace quintet::fake {

inline constexpr int64_t kWidth = 4;  // of hidden states: a hash in pieces of 16 bits
inline constexpr int64_t kVocab = 41;

inline uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t x = a * 0x9E3779B97F4A7C15U + b + 0x632BE59BD9B4E019U;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

inline void put(const Tensor& rows, int64_t i, uint64_t hash) {
  for (int64_t c = 0; c < kWidth; ++c) {
    FakeDevice::row(rows, i)[c] = static_cast<float>(hash >> (16 * c) & 0xFFFF);
  }
}

inline uint64_t get(const float* row) {
  uint64_t hash = 0;
  for (int64_t c = 0; c < kWidth; ++c) hash |= static_cast<uint64_t>(row[c]) << (16 * c);
  return hash;
}
// Rows of a FakeDevice, or of the host.
inline uint64_t get(const Tensor& rows, int64_t i) {
  return get(rows.buffer()->host() != nullptr ? rows.row<float>(i) : FakeDevice::row(rows, i));
}

inline uint64_t embed(int32_t token, int32_t position) {
  return mix(static_cast<uint64_t>(token), static_cast<uint64_t>(position));
}

// Whole numbers below 2^24, all different but by rare chance.
inline float logit(uint64_t hidden, int64_t token) {
  return static_cast<float>(mix(hidden, static_cast<uint64_t>(token)) >> 40);
}

// One block each.
class EncoderStage : public quintet::EncoderStage {
 public:
  explicit EncoderStage(FakeDevice& device) : device_(device) {}

  std::function<void(const MicroBatch&)> before = [](const MicroBatch&) {};  // when called
  std::function<void(const MicroBatch&)> during = [](const MicroBatch&) {};  // when computed

  Tensor forward(const MicroBatch& batch, Tensor hidden) override {
    before(batch);
    const bool embeds = !hidden;
    if (embeds) hidden = device_.allocate(batch.n_tokens(), kWidth);
    device_.run([this, batch, hidden, embeds] {
      during(batch);
      compute(batch, hidden, embeds);
    });
    return hidden;
  }

  // The block over one sequence: each row sees all.
  static void apply(std::vector<uint64_t>& rows) {
    uint64_t all = 0;
    for (const uint64_t row : rows) all = mix(all, row);
    for (uint64_t& row : rows) row = mix(row, all);
  }

 private:
  static void compute(const MicroBatch& batch, const Tensor& hidden, bool embeds) {
    for (int64_t i = 0; embeds && i < batch.n_tokens(); ++i) {
      const auto at = static_cast<size_t>(i);
      put(hidden, i, embed(batch.tokens[at], batch.positions[at]));
    }
    for (size_t s = 0; s + 1 < batch.cu_seqlens.size(); ++s) {
      std::vector<uint64_t> rows;
      for (int32_t i = batch.cu_seqlens[s]; i < batch.cu_seqlens[s + 1]; ++i) {
        rows.push_back(get(hidden, i));
      }
      apply(rows);
      for (size_t i = 0; i < rows.size(); ++i) {
        put(hidden, batch.cu_seqlens[s] + static_cast<int64_t>(i), rows[i]);
      }
    }
  }

  FakeDevice& device_;
};

// One block each.
class DecoderStage : public quintet::DecoderStage {
 public:
  DecoderStage(FakeDevice& device, uint64_t block) : device_(device), block_(block) {}

  std::function<void(const StepBatch&)> before = [](const StepBatch&) {};  // when called
  std::function<void(const StepBatch&)> during = [](const StepBatch&) {};  // when computed

  void reserve(const CachePages& pages) override {
    self_.assign(static_cast<size_t>(pages.self * kPageTokens), kNothing);
    cross_.assign(static_cast<size_t>(pages.cross * kPageTokens), kNothing);
  }

  Tensor forward(const StepBatch& step, const Tensor& source, Tensor hidden) override {
    before(step);
    const bool embeds = !hidden;
    if (embeds) hidden = device_.allocate(step.n_rows(), kWidth);
    device_.run([this, step, source, hidden, embeds] {
      during(step);
      if (embeds) embed_rows(step, hidden);
      compute(step, source, hidden);
    });
    return hidden;
  }

  Tensor logits(const Tensor& hidden, const std::vector<int32_t>& selected) override {
    const Tensor logits = device_.allocate(static_cast<int64_t>(selected.size()), kVocab);
    device_.run([hidden, selected, logits] {
      for (size_t i = 0; i < selected.size(); ++i) {
        float* const row = FakeDevice::row(logits, static_cast<int64_t>(i));
        for (int64_t v = 0; v < kVocab; ++v) row[v] = logit(get(hidden, selected[i]), v);
      }
    });
    return logits;
  }

  static uint64_t key(uint64_t hidden, uint64_t block) { return mix(hidden, block + 1); }
  static uint64_t source_key(uint64_t source, uint64_t block) { return mix(source, block + 100); }
  static uint64_t output(uint64_t hidden, std::span<const uint64_t> keys,
                         std::span<const uint64_t> sources) {
    for (const uint64_t key : keys) hidden = mix(hidden, key);
    for (const uint64_t source : sources) hidden = mix(hidden, source);
    return hidden;
  }

 private:
  static constexpr uint64_t kNothing = 0xDEAD;

  void compute(const StepBatch& step, const Tensor& source, const Tensor& hidden) {
    for (size_t i = 0; i < step.source_slots.size(); ++i) {
      cross_[static_cast<size_t>(step.source_slots[i])] =
          source_key(get(source, static_cast<int64_t>(i)), block_);
    }
    for (const PageCopy& copy : step.copies) {
      std::copy_n(self_.begin() + copy.from * kPageTokens, copy.n_tokens,
                  self_.begin() + copy.to * kPageTokens);
    }
    std::vector<uint64_t> keys;
    for (int64_t i = 0; i < step.n_rows(); ++i) keys.push_back(key(get(hidden, i), block_));
    for (size_t i = 0; i < step.slots.size(); ++i) {
      if (step.slots[i] >= 0) self_[static_cast<size_t>(step.slots[i])] = keys[i];
    }
    for (int64_t i = 0; i < step.n_rows(); ++i) {
      std::vector<uint64_t> seen;
      if (i < step.prompts.n_tokens()) {
        int32_t first = 0;
        for (const int32_t begin : step.prompts.cu_seqlens) first = begin <= i ? begin : first;
        seen.assign(keys.begin() + first, keys.begin() + i + 1);
      } else {
        seen = read(self_, step.self, i - step.prompts.n_tokens());
      }
      const std::vector<uint64_t> sources =
          step.cross.table.empty() ? std::vector<uint64_t>{} : read(cross_, step.cross, i);
      put(hidden, i, output(get(hidden, i), seen, sources));
    }
  }

  static void embed_rows(const StepBatch& step, const Tensor& hidden) {
    for (int64_t i = 0; i < step.n_rows(); ++i) {
      const int64_t n_prompt = step.prompts.n_tokens();
      const bool is_prompt = i < n_prompt;
      const auto at = static_cast<size_t>(is_prompt ? i : i - n_prompt);
      put(hidden, i,
          embed((is_prompt ? step.prompts.tokens : step.tokens)[at],
                (is_prompt ? step.prompts.positions : step.positions)[at]));
    }
  }

  static std::vector<uint64_t> read(const std::vector<uint64_t>& cache, const PageTable& table,
                                    int64_t row) {
    const auto number = static_cast<size_t>(table.table.at(static_cast<size_t>(row)));
    const auto first = static_cast<size_t>(table.begin.at(number));
    std::vector<uint64_t> keys;
    for (int32_t key = 0; key < table.n_keys.at(static_cast<size_t>(row)); ++key) {
      const int32_t page = table.pages.at(first + static_cast<size_t>(key / kPageTokens));
      keys.push_back(cache.at(static_cast<size_t>(page * kPageTokens + key % kPageTokens)));
    }
    return keys;
  }

  FakeDevice& device_;
  const uint64_t block_;
  std::vector<uint64_t> self_;
  std::vector<uint64_t> cross_;
};

// The encoder's output for one sequence.
inline std::vector<uint64_t> encode(const Sequence& sequence, int64_t n_blocks) {
  std::vector<uint64_t> rows;
  for (size_t i = 0; i < sequence.tokens.size(); ++i) {
    rows.push_back(embed(sequence.tokens[i], sequence.positions.empty() ? static_cast<int32_t>(i)
                                                                        : sequence.positions[i]));
  }
  for (int64_t b = 0; b < n_blocks; ++b) EncoderStage::apply(rows);
  return rows;
}

// The last token's hidden state, all tokens read anew. `source`: what encode() gives.
inline uint64_t decode(std::span<const int32_t> tokens, std::span<const uint64_t> source,
                       int64_t n_blocks) {
  std::vector<uint64_t> rows;
  for (size_t i = 0; i < tokens.size(); ++i) {
    rows.push_back(embed(tokens[i], static_cast<int32_t>(i)));
  }
  for (uint64_t b = 0; b < static_cast<uint64_t>(n_blocks); ++b) {
    std::vector<uint64_t> keys;
    std::vector<uint64_t> sources;
    for (const uint64_t row : rows) keys.push_back(DecoderStage::key(row, b));
    for (const uint64_t row : source) sources.push_back(DecoderStage::source_key(row, b));
    const bool last = b + 1 == static_cast<uint64_t>(n_blocks);
    for (size_t i = last ? rows.size() - 1 : 0; i < rows.size(); ++i) {
      rows[i] = DecoderStage::output(rows[i], std::span(keys).first(i + 1), sources);
    }
  }
  return rows.back();
}

}  // namespace quintet::fake

#endif  // QUINTET_PIPELINE_FAKE_STAGES_H_
