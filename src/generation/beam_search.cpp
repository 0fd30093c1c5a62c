#include "generation/beam_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/error.h"
#include "generation/logits_processors.h"
#include "generation/philox.h"
#include "generation/stop.h"
#include "generation/token_history.h"
#include "generation/warpers.h"

namespace quintet {
namespace {

// What the reference adds to a score in order to rule a sequence out.
constexpr float kOut = -1.0e9F;

struct Beam {
  TokenHistory history;
  float score = 0;  // sum of log-probabilities, after processors
};

// A beam with one more token.
struct Continuation {
  size_t beam = 0;
  int32_t token = 0;
  float score = 0;
  double rank = 0;  // by which the best are taken: the score, or a random key
  bool ends = false;
};

struct Hypothesis {
  std::vector<int32_t> ids;  // new tokens
  float score = kOut;
  bool finished = false;
};

// The places of the n largest, best first; of equals the earlier first.
template <typename Value>
std::vector<size_t> largest(size_t n_values, size_t n, const Value& value) {
  std::vector<size_t> order(n_values);
  std::iota(order.begin(), order.end(), size_t{0});
  n = std::min(n, n_values);
  std::partial_sort(
      order.begin(), order.begin() + static_cast<ptrdiff_t>(n), order.end(),
      [&](size_t a, size_t b) { return value(a) != value(b) ? value(a) > value(b) : a < b; });
  order.resize(n);
  return order;
}

class BeamSearch : public Search {
 public:
  BeamSearch(const GenerationConfig& config, const SearchInput& input)
      : config_(config),
        processors_(config, input),
        stop_(config, input),
        ordinal_(input.ordinal),
        vocab_size_(input.vocab_size),
        n_prompt_(input.prompt.size()),
        n_beams_(static_cast<size_t>(config.num_beams)),
        // Enough for n_beams to go on even where every eos of every beam is among them.
        n_continuations_(std::max<size_t>(2, 1 + config.eos_token_id.size()) * n_beams_),
        beams_(n_beams_, Beam{TokenHistory(input.prompt), kOut}),
        hypotheses_(n_beams_) {
    beams_.front().score = 0;  // at first all beams are equal, so only the first one counts
  }

  SearchRequest request() const override {
    SearchRequest request;
    request.log_softmax = true;
    request.top_k = config_.do_sample
                        ? sampling_top_k(config_, vocab_size_)
                        : std::min(static_cast<int64_t>(n_continuations_), vocab_size_);
    const size_t n_rows = n_new_ == 0 ? 1 : beams_.size();
    for (size_t row = 0; row < n_rows; ++row) {
      processors_.append_edits(static_cast<int32_t>(row), beams_[row].history, request.edits);
    }
    return request;
  }

  std::vector<NextRow> advance(std::span<const Candidates> rows) override {
    std::vector<Continuation> best = best_continuations(rows);
    ++n_new_;
    for (auto& continuation : best) continuation.ends = ends(continuation);
    keep_finished(best);
    const bool first = n_new_ == 1;
    std::vector<NextRow> next;
    std::vector<Beam> beams;
    const auto running_score = [&](size_t i) {
      return best[i].score + (best[i].ends ? kOut : 0.0F);
    };
    for (const size_t i : largest(best.size(), n_beams_, running_score)) {
      next.push_back({first ? 0 : static_cast<int32_t>(best[i].beam), best[i].token});
      beams.push_back({beams_[best[i].beam].history, running_score(i)});
      beams.back().history.append(best[i].token);
    }
    beams_ = std::move(beams);
    return goes_on(best) ? next : std::vector<NextRow>();
  }

  std::vector<Generated> results() const override {
    std::vector<Generated> results;
    for (int64_t i = 0; i < config_.num_return_sequences; ++i) {
      const auto& hypothesis = hypotheses_[static_cast<size_t>(i)];
      results.push_back({hypothesis.ids, hypothesis.score, true});
    }
    return results;
  }

  int64_t max_rows() const override { return config_.num_beams; }
  int64_t max_new_tokens() const override {
    return processors_.max_length() - processors_.padded_length(n_prompt_);
  }

 private:
  // Of all beams, best score first.
  std::vector<Continuation> best_continuations(std::span<const Candidates> rows) const {
    std::vector<Continuation> all;
    for (size_t beam = 0; beam < beams_.size(); ++beam) {
      const auto& row = rows[n_new_ == 0 ? 0 : beam];
      if (config_.do_sample) {
        for (const auto& choice : warp(config_, row)) {
          all.push_back(continuation(beam, choice.token, choice.value));
        }
      } else {
        const auto first = static_cast<ptrdiff_t>(all.size());
        for (size_t i = 0; i < row.ids.size(); ++i) {
          all.push_back(continuation(beam, row.ids[i], row.values[i]));
        }
        // Scores that the sum made equal go by token.
        std::sort(all.begin() + first, all.end(),
                  [](const Continuation& a, const Continuation& b) { return a.token < b.token; });
      }
    }
    if (all.empty()) {
      fail(ErrorKind::kRecord,
           "sampling: at new token {} no token of {} has a probability; the options forbid all, or "
           "the model's logits are not finite",
           n_new_ + 1, vocab_size_);
    }
    std::vector<Continuation> best;
    best.reserve(n_continuations_);
    for (const size_t i :
         largest(all.size(), n_continuations_, [&](size_t at) { return all[at].rank; })) {
      best.push_back(all[i]);
    }
    std::stable_sort(best.begin(), best.end(), [](const Continuation& a, const Continuation& b) {
      return a.score > b.score;
    });
    return best;
  }

  Continuation continuation(size_t beam, int32_t token, float value) const {
    float score = beams_[beam].score + value;
    if (std::isnan(score)) score = -std::numeric_limits<float>::infinity();
    Continuation continuation{beam, token, score, score};
    if (config_.do_sample) {
      // The largest sums of log-probability and Gumbel noise are a sample without replacement.
      const size_t place = beam * static_cast<size_t>(vocab_size_) + static_cast<size_t>(token);
      const double u = uniform(
          {config_.seed, ordinal_, static_cast<uint32_t>(place), static_cast<uint32_t>(n_new_)});
      continuation.rank -= std::log(-std::log(std::max(u, 0x1p-54)));
    }
    return continuation;
  }

  bool is_full() const {
    return processors_.padded_length(n_prompt_ + n_new_) >= processors_.max_length();
  }

  bool ends(const Continuation& continuation) const {
    if (is_full()) return true;
    std::vector<int32_t> ids = beams_[continuation.beam].history.ids();
    ids.push_back(continuation.token);
    return stop_.ends(ids);
  }

  float penalised(float score, size_t length) const {
    return score /
           static_cast<float>(std::pow(static_cast<double>(length), config_.length_penalty));
  }

  bool all_finished() const {
    return std::all_of(hypotheses_.begin(), hypotheses_.end(),
                       [](const Hypothesis& hypothesis) { return hypothesis.finished; });
  }

  // Takes into the hypotheses those of the n_beams best continuations that end, if good enough.
  void keep_finished(const std::vector<Continuation>& best) {
    const bool closed = config_.early_stopping == EarlyStopping::kTrue && all_finished();
    std::vector<float> scores;
    for (const auto& hypothesis : hypotheses_) scores.push_back(hypothesis.score);
    for (size_t i = 0; i < best.size(); ++i) {
      float score = penalised(best[i].score, n_new_);
      score += closed ? kOut : 0.0F;
      score += may_improve_ ? 0.0F : kOut;
      score += best[i].ends && i < n_beams_ ? 0.0F : kOut;
      scores.push_back(score);
    }
    std::vector<Hypothesis> kept;
    for (const size_t at :
         largest(scores.size(), n_beams_, [&scores](size_t i) { return scores[i]; })) {
      if (at < n_beams_) {
        kept.push_back(std::move(hypotheses_[at]));
      } else {
        const size_t i = at - n_beams_;
        kept.push_back({new_tokens(best[i]), scores[at], best[i].ends && i < n_beams_});
      }
    }
    hypotheses_ = std::move(kept);
  }

  std::vector<int32_t> new_tokens(const Continuation& continuation) const {
    const auto& ids = beams_[continuation.beam].history.ids();
    std::vector<int32_t> tokens(ids.begin() + static_cast<ptrdiff_t>(n_prompt_), ids.end());
    tokens.push_back(continuation.token);
    return tokens;
  }

  // Whether a further step can change the result, as the reference guesses it.
  bool goes_on(const std::vector<Continuation>& best) {
    const bool longest =
        config_.early_stopping == EarlyStopping::kNever && config_.length_penalty > 0;
    const auto length = longest ? static_cast<size_t>(max_new_tokens()) : n_new_;
    const float hope = penalised(beams_.front().score, length);
    float worst = std::numeric_limits<float>::infinity();
    for (const auto& hypothesis : hypotheses_) worst = std::min(worst, hypothesis.score);
    may_improve_ = may_improve_ &&
                   std::any_of(hypotheses_.begin(), hypotheses_.end(), [&](const Hypothesis& one) {
                     return hope > (one.finished ? worst : kOut);
                   });
    const bool closed = config_.early_stopping == EarlyStopping::kTrue && all_finished();
    const bool all_end =
        std::all_of(best.begin(), best.end(), [](const Continuation& one) { return one.ends; });
    return may_improve_ && !closed && !all_end;
  }

  GenerationConfig config_;
  LogitsProcessors processors_;
  StopRule stop_;
  uint64_t ordinal_;
  int64_t vocab_size_;
  size_t n_prompt_;
  size_t n_beams_;
  size_t n_continuations_;
  std::vector<Beam> beams_;
  std::vector<Hypothesis> hypotheses_;  // n_beams, best first; unfinished ones are placeholders
  bool may_improve_ = true;             // once false, it stays so
  size_t n_new_ = 0;                    // tokens of each beam
};

}  // namespace

std::unique_ptr<Search> make_beam_search(const GenerationConfig& config, const SearchInput& input) {
  return std::make_unique<BeamSearch>(config, input);
}

}  // namespace quintet
