// From candidates to the distribution that is sampled from: temperature, top-k, top-p, min-p,
// typical-p, in the order of the reference.
#ifndef QUINTET_GENERATION_WARPERS_H_
#define QUINTET_GENERATION_WARPERS_H_

#include <cstdint>
#include <vector>

#include "generation/generation_config.h"
#include "generation/search.h"

namespace quintet {

struct Choice {
  int32_t token = 0;
  float value = 0;         // divided by the temperature
  double probability = 0;  // among the choices that remain; their sum is 1
};

// Fewest tokens that every filter leaves: 1, with beams one more than there are eos tokens.
int64_t min_tokens_to_keep(const GenerationConfig& config);

// Candidates of a row that sampling needs: as many as top_k lets pass, or the whole vocabulary.
int64_t sampling_top_k(const GenerationConfig& config, int64_t vocab_size);

// The choices that remain, likeliest first. Candidates of minus infinity are none; empty where
// there are no others, or where a value is not a number.
std::vector<Choice> warp(const GenerationConfig& config, const Candidates& candidates);

}  // namespace quintet

#endif  // QUINTET_GENERATION_WARPERS_H_
