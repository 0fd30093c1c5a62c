// Greedy search: always the likeliest token.
#ifndef QUINTET_GENERATION_GREEDY_H_
#define QUINTET_GENERATION_GREEDY_H_

#include <memory>

#include "generation/search.h"

namespace quintet {

std::unique_ptr<Search> make_greedy(const GenerationConfig& config, const SearchInput& input);

}  // namespace quintet

#endif  // QUINTET_GENERATION_GREEDY_H_
