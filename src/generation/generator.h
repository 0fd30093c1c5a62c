// Continuous batching over a ring: records come in, get their place in a group of sequences, are
// encoded where the model has an encoder, and leave when their search is finished; the place is
// then taken by the next record at once. At least as many groups are under way as the ring has
// decoder stages.
#ifndef QUINTET_GENERATION_GENERATOR_H_
#define QUINTET_GENERATION_GENERATOR_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "generation/search.h"
#include "models/decoder.h"
#include "pipeline/ring.h"

namespace quintet {

// One record to generate from.
struct GenerationTask {
  uint64_t ordinal = 0;
  Sequence source;                 // of T5: what the encoder reads; may be without tokens
  std::unique_ptr<Search> search;  // and its prompt:
  std::vector<int32_t> prompt;
};

struct GenerationResult {
  uint64_t ordinal = 0;
  std::vector<Generated> sequences;
  int64_t n_steps = 0;
  std::string rejected;  // not empty: why it could not be generated
};

struct GeneratorOptions {
  int64_t n_groups = 1;                  // at least the ring's decoder stages
  int64_t rows_per_group = 32;           // sequences (beams, samples) of one step
  int64_t prompt_tokens_per_step = 512;  // new prompts join a step up to so many tokens
  CachePages pages;                      // as reserved
  int64_t max_positions = 0;             // 0: no bound
};

// Pages that a record may come to hold at once: prompt and new tokens of all rows, shared pages
// counted once, one page to spare for each row that leaves its parent's.
CachePages pages_of_record(int64_t prompt_length, int64_t source_length, int64_t max_rows,
                           int64_t max_new_tokens);

struct GeneratorStats {
  uint64_t records = 0;
  uint64_t prompt_tokens = 0;
  uint64_t new_tokens = 0;  // chosen, over all rows
  uint64_t steps = 0;
};

class Generator {
 public:
  Generator(Ring& ring, const GeneratorOptions& options);

  struct Events {
    std::function<std::optional<GenerationTask>()> next;  // nothing: the input has ended
    std::function<void(GenerationResult)> done;           // in the order of finishing
    // Of every new token of a record's first row, where streaming; may be empty.
    std::function<void(uint64_t ordinal, int32_t token)> token = {};
  };
  // Until all are done or `stop`. A record that can never fit the pages is done with a rejection.
  // Throws what the ring throws.
  GeneratorStats run(const Events& events, const std::atomic<bool>& stop);

 private:
  Ring& ring_;
  GeneratorOptions options_;
};

}  // namespace quintet

#endif  // QUINTET_GENERATION_GENERATOR_H_
