#include "conformance/inputs.h"

#include <algorithm>
#include <random>

namespace quintet::conformance {

Inputs test_inputs(const MadeCheckpoint& made) {
  constexpr size_t kLengths[] = {9, 1, 26, 3, 61, 14};
  constexpr size_t kDecoderLengths[] = {4, 1, 2, 30, 7, 5};
  std::mt19937_64 random(17);
  const auto token = [&] {  // neither the start nor the end of a text
    return static_cast<int64_t>(2 + random() % static_cast<uint64_t>(made.vocab_size - 2));
  };
  Inputs inputs;
  for (size_t i = 0; i < std::size(kLengths); ++i) {
    auto& ids = inputs.ids.emplace_back(kLengths[i]);
    std::ranges::generate(ids, token);
    inputs.mask.emplace_back(kLengths[i], uint8_t{1});
    auto& decoder_ids = inputs.decoder_ids.emplace_back(kDecoderLengths[i]);
    std::ranges::generate(decoder_ids, token);
    decoder_ids.front() = 0;
  }
  std::fill_n(inputs.mask[2].begin(), 5, uint8_t{0});   // padding on the left
  std::fill_n(inputs.mask[0].rbegin(), 2, uint8_t{0});  // on the right
  std::fill_n(inputs.mask[4].begin() + 30, 4, uint8_t{0});
  return inputs;
}

Inputs one_of(const Inputs& inputs, size_t i) {
  Inputs one{.ids = {inputs.ids[i]}, .mask = {}, .decoder_ids = {inputs.decoder_ids[i]}};
  if (!inputs.mask.empty()) one.mask = {inputs.mask[i]};
  return one;
}

GenerationOptions sampling(uint64_t seed) {
  return {.max_new_tokens = 8,
          .min_new_tokens = 4,
          .num_return_sequences = 2,
          .do_sample = true,
          .temperature = 0.9,
          .top_k = 0,
          .seed = seed,
          .batch_size = 5};
}

const std::vector<Search>& searches() {
  static const std::vector<Search> kSearches = {
      {"greedy search",
       {.max_new_tokens = 8, .min_new_tokens = 4, .no_repeat_ngram_size = 2, .batch_size = 4}},
      {"beam search",
       {.max_new_tokens = 7,
        .min_new_tokens = 3,
        .num_beams = 3,
        .num_return_sequences = 2,
        .batch_size = 9}},
      {"sampling", sampling(5)},
  };
  return kSearches;
}

}  // namespace quintet::conformance
