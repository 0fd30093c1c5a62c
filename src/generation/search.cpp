#include "generation/search.h"

#include <algorithm>

#include "core/error.h"
#include "generation/beam_search.h"
#include "generation/greedy.h"
#include "generation/sampling.h"

namespace quintet {

std::unique_ptr<Search> make_search(const GenerationConfig& config, SearchInput input) {
  const auto n_prompt = static_cast<int64_t>(input.prompt.size());
  if (n_prompt == 0) {
    fail(ErrorKind::kRecord, "no token to start from: the prompt is empty, or all of it is masked");
  }
  input.padded_prompt_length = std::max(input.padded_prompt_length, n_prompt);
  const int64_t max_length =
      resolved_max_length(config, input.padded_prompt_length, input.max_positions);
  if (input.padded_prompt_length >= max_length) {
    fail(ErrorKind::kRecord,
         "the prompt has {} tokens and max_length is {}, expected it above; use max_new_tokens",
         input.padded_prompt_length, max_length);
  }
  if (config.num_beams > 1) return make_beam_search(config, input);
  return config.do_sample ? make_sampling(config, input) : make_greedy(config, input);
}

}  // namespace quintet
