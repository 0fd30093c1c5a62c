// Choosing the tokens of one record, step by step: greedy, sampling, beam search. A search says
// what is to be done with the next logits of its rows, takes the candidates, and says which rows go
// on. It knows nothing of devices, batches or caches.
#ifndef QUINTET_GENERATION_SEARCH_H_
#define QUINTET_GENERATION_SEARCH_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/logit_edit.h"
#include "generation/generation_config.h"

namespace quintet {

struct SearchInput {
  uint64_t ordinal = 0;         // of the record: sampling draws by seed, record, sample, step
  std::vector<int32_t> prompt;  // the decoder's ids so far: start token and prefix, or GPT-2's
                                //   prompt without masked ids; at least one
  std::vector<int32_t> encoder_input;  // what encoder_* options look at: the record's unmasked ids;
                                       //   of GPT-2 the prompt
  int64_t padded_prompt_length = 0;    // what max_length counts: GPT-2's row with its masked ids;
                                       //   0: the prompt as it is
  int64_t max_positions = 0;           // of the model, 0: no bound; for the default length only
  int64_t vocab_size = 0;
  // Text of ids, special tokens skipped, for stop_strings; may be empty where there are none.
  std::function<std::string(std::span<const int32_t>)> decode;
};

// What a search wants of the next logits, for all of its rows alike.
struct SearchRequest {
  bool log_softmax = false;      // of the raw logits, before the edits
  std::vector<LogitEdit> edits;  // `row` counts the search's own rows from 0; to be done in order
  int64_t top_k = 1;             // candidates of each row; at most vocab_size
};

// The best candidates of one row, largest first, of equals the lower id first; [top_k].
struct Candidates {
  std::span<const int32_t> ids;
  std::span<const float> values;
};

// A row of the next step: `token` goes behind what row `parent` of this step holds.
struct NextRow {
  int32_t parent = 0;
  int32_t token = 0;
};

struct Generated {
  std::vector<int32_t> ids;  // new tokens, up to and with the one that ended it
  double score = 0;          // of beams: log-probability over length to the power length_penalty
  bool has_score = false;    // only beams have one
};

class Search {
 public:
  virtual ~Search() = default;
  // Starts with one row, the prompt, however many beams or samples there will be.
  virtual SearchRequest request() const = 0;
  // One Candidates per row, in the order of the rows. The rows of the next step; none: finished.
  // Throws Error(kRecord) where sampling is left without a token to choose.
  virtual std::vector<NextRow> advance(std::span<const Candidates> rows) = 0;
  virtual std::vector<Generated> results() const = 0;  // num_return_sequences, best first
  // The most rows that it will ever have at once, and the most new tokens of a row.
  virtual int64_t max_rows() const = 0;
  virtual int64_t max_new_tokens() const = 0;
};

// `config` has passed check_generation_config. Throws Error(kRecord) where the prompt is empty or
// already as long as max_length, Error(kUsage) for stop_strings without `decode`.
std::unique_ptr<Search> make_search(const GenerationConfig& config, SearchInput input);

}  // namespace quintet

#endif  // QUINTET_GENERATION_SEARCH_H_
