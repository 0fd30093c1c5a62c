// Continuous batching over a ring: records come in, get their place in a group of sequences, are
// encoded where the model has an encoder, and leave when their search is finished; the place is
// then taken by the next record at once.
//
// A record's result does not depend on the others, nor on timing; which group takes it does.
#ifndef QUINTET_GENERATION_GENERATOR_H_
#define QUINTET_GENERATION_GENERATOR_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/micro_batch.h"
#include "generation/pages.h"
#include "generation/search.h"
#include "models/decoder.h"
#include "pipeline/ring.h"

namespace quintet {

// One record to generate from.
struct GenerationTask {
  uint64_t ordinal = 0;            // no other record under way has it
  Sequence source;                 // what an encoder reads; a decoder alone has none
  std::unique_ptr<Search> search;  // and its prompt:
  std::vector<int32_t> prompt;
};

struct GenerationResult {
  uint64_t ordinal = 0;
  std::vector<Generated> sequences;
  int64_t n_steps = 0;
  std::string rejected;  // not empty: why nothing was generated
};

struct GeneratorOptions {
  int64_t n_groups = 1;         // at least the ring's decoder stages
  int64_t rows_per_group = 32;  // sequences (beams, samples) of one step
  // New records join a step up to so many tokens of prompts and so many of sources, or one alone.
  int64_t prompt_tokens_per_step = 512;
  int64_t source_tokens_per_step = 4096;
  int64_t encode_tokens_per_batch = 512;  // of the encoder's micro-batches; a longer one alone
  CachePages pages;                       // as the stages have reserved
  int64_t max_positions = 0;              // of one sequence; 0: no bound
};

struct GeneratorStats {
  uint64_t records = 0;
  uint64_t prompt_tokens = 0;
  uint64_t new_tokens = 0;  // one for each row of a search and step
  uint64_t steps = 0;
};

class Generator {
 public:
  // Throws Error(kUsage) where there are fewer groups than decoder stages or no self pages.
  Generator(Ring& ring, const GeneratorOptions& options);

  struct Events {
    // The next record, soon: the ring waits. Nothing: the input has ended.
    std::function<std::optional<GenerationTask>()> next;
    std::function<void(GenerationResult)> done;  // in the order of finishing
    // Of every new token of a record whose search has one row; may be empty.
    std::function<void(uint64_t ordinal, int32_t token)> token = {};
  };
  // Until all are done or `stop`; then the ring has nothing under way. A record that can never be
  // generated (no prompt, no source, more rows or pages than there are, more positions than the
  // model has) is done with a rejection; one that comes to the last position ends there with what
  // it has. Throws what the ring throws; the ring is then of no more use.
  GeneratorStats run(const Events& events, const std::atomic<bool>& stop);

 private:
  Ring& ring_;
  GeneratorOptions options_;
};

}  // namespace quintet

#endif  // QUINTET_GENERATION_GENERATOR_H_
