// Beam search, plain or sampling: the num_beams best unfinished sequences go on together, and the
// best finished ones are kept, by log-probability over length to the power length_penalty.
#ifndef QUINTET_GENERATION_BEAM_SEARCH_H_
#define QUINTET_GENERATION_BEAM_SEARCH_H_

#include <memory>

#include "generation/search.h"

namespace quintet {

// Follows the reference's order, ties and float32 roundings.
std::unique_ptr<Search> make_beam_search(const GenerationConfig& config, const SearchInput& input);

}  // namespace quintet

#endif  // QUINTET_GENERATION_BEAM_SEARCH_H_
