// What the tests give to the models: sequences of many lengths, with masks and without.
#ifndef QUINTET_CONFORMANCE_INPUTS_H_
#define QUINTET_CONFORMANCE_INPUTS_H_

#include <string_view>
#include <vector>

#include "conformance/cell.h"

namespace quintet::conformance {

// One token to more than two pages of a cache; masks on the right, on the left, with a hole.
Inputs test_inputs(const MadeCheckpoint& made);
// The i-th of them alone.
Inputs one_of(const Inputs& inputs, size_t i);

// A way to generate.
struct Search {
  std::string_view name;
  GenerationOptions options;
};
// Greedy, beams, and sampling with a seed.
const std::vector<Search>& searches();
GenerationOptions sampling(uint64_t seed);

}  // namespace quintet::conformance

#endif  // QUINTET_CONFORMANCE_INPUTS_H_
