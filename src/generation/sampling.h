// Sampling: each token is drawn from the warped distribution, for each of num_return_sequences.
#ifndef QUINTET_GENERATION_SAMPLING_H_
#define QUINTET_GENERATION_SAMPLING_H_

#include <memory>
#include <vector>

#include "generation/search.h"
#include "generation/warpers.h"

namespace quintet {

// The token at which the running sum of the probabilities passes `u`, in [0, 1).
int32_t choose(const std::vector<Choice>& choices, double u);

std::unique_ptr<Search> make_sampling(const GenerationConfig& config, const SearchInput& input);

}  // namespace quintet

#endif  // QUINTET_GENERATION_SAMPLING_H_
