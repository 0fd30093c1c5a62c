#include "generation/warpers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace quintet {
namespace {

// Softmax over the choices, in double; the first has the largest value.
void normalise(std::vector<Choice>& choices) {
  double sum = 0;
  for (auto& choice : choices) {
    choice.probability = std::exp(static_cast<double>(choice.value) - choices.front().value);
    sum += choice.probability;
  }
  for (auto& choice : choices) choice.probability /= sum;
}

void cut_to(std::vector<Choice>& choices, size_t n_kept) {
  if (n_kept >= choices.size()) return;
  choices.resize(n_kept);
  normalise(choices);
}

// Drops the least likely while all that is dropped has at most 1 - top_p.
void keep_top_p(std::vector<Choice>& choices, double top_p, size_t least) {
  double dropped = 0;
  size_t n_kept = choices.size();
  while (n_kept > least) {
    dropped += choices[n_kept - 1].probability;
    if (dropped > 1.0 - top_p) break;
    --n_kept;
  }
  cut_to(choices, n_kept);
}

// Drops what is less likely than min_p times the likeliest.
void keep_min_p(std::vector<Choice>& choices, double min_p, size_t least) {
  const double bound = min_p * choices.front().probability;
  size_t n_kept = choices.size();
  while (n_kept > least && choices[n_kept - 1].probability < bound) --n_kept;
  cut_to(choices, n_kept);
}

// Keeps the tokens whose information is nearest to the distribution's entropy, up to a probability
// of `mass` together (Meister et al. 2022).
void keep_typical(std::vector<Choice>& choices, double mass, size_t least) {
  double entropy = 0;
  for (const auto& choice : choices) {
    if (choice.probability > 0) entropy -= choice.probability * std::log(choice.probability);
  }
  std::vector<double> distance(choices.size());
  for (size_t i = 0; i < choices.size(); ++i) {
    distance[i] = std::abs(-std::log(choices[i].probability) - entropy);
  }
  std::vector<size_t> order(choices.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return distance[a] < distance[b]; });
  double sum = 0;
  size_t last = 0;  // the first at which the sum reaches the mass
  for (; last + 1 < order.size(); ++last) {
    sum += choices[order[last]].probability;
    if (sum >= mass) break;
  }
  const double bound = distance[order[last]];
  std::vector<bool> kept(choices.size());
  for (size_t i = 0; i < order.size(); ++i) {
    kept[order[i]] = i < least || distance[order[i]] <= bound;
  }
  size_t n_kept = 0;
  for (size_t i = 0; i < choices.size(); ++i) {
    if (kept[i]) choices[n_kept++] = choices[i];
  }
  cut_to(choices, n_kept);
}

}  // namespace

int64_t min_tokens_to_keep(const GenerationConfig& config) {
  if (config.num_beams == 1) return 1;
  const auto n_eos = static_cast<int64_t>(config.eos_token_id.size());
  return n_eos == 0 ? 2 : n_eos + 1;
}

int64_t sampling_top_k(const GenerationConfig& config, int64_t vocab_size) {
  if (config.top_k == 0) return vocab_size;
  return std::min(std::max(config.top_k, min_tokens_to_keep(config)), vocab_size);
}

std::vector<Choice> warp(const GenerationConfig& config, const Candidates& candidates) {
  const auto least = static_cast<size_t>(min_tokens_to_keep(config));
  const auto temperature = static_cast<float>(config.temperature);
  size_t n_candidates = candidates.ids.size();
  if (config.top_k != 0) {
    n_candidates = std::min(n_candidates, std::max(static_cast<size_t>(config.top_k), least));
  }
  std::vector<Choice> choices;
  choices.reserve(n_candidates);
  for (size_t i = 0; i < n_candidates; ++i) {
    const float value = candidates.values[i] / temperature;
    if (value == -std::numeric_limits<float>::infinity()) continue;
    if (!std::isfinite(value)) return {};
    choices.push_back({candidates.ids[i], value, 0});
  }
  if (choices.empty()) return choices;
  normalise(choices);
  if (config.top_p < 1.0) keep_top_p(choices, config.top_p, least);
  if (config.min_p) keep_min_p(choices, *config.min_p, least);
  if (config.typical_p < 1.0) keep_typical(choices, config.typical_p, least);
  return choices;
}

}  // namespace quintet
