#include "generation/sampling.h"

#include "core/error.h"
#include "generation/logits_processors.h"
#include "generation/philox.h"
#include "generation/stop.h"
#include "generation/token_history.h"

namespace quintet {
namespace {

class Sampling : public Search {
 public:
  Sampling(const GenerationConfig& config, const SearchInput& input)
      : config_(config),
        processors_(config, input),
        stop_(config, input),
        ordinal_(input.ordinal),
        vocab_size_(input.vocab_size),
        n_prompt_(input.prompt.size()),
        samples_(static_cast<size_t>(config.num_return_sequences), TokenHistory(input.prompt)) {
    for (size_t i = 0; i < samples_.size(); ++i) running_.push_back(i);
  }

  SearchRequest request() const override {
    SearchRequest request;
    request.top_k = sampling_top_k(config_, vocab_size_);
    const size_t n_rows = step_ == 0 ? 1 : running_.size();
    for (size_t row = 0; row < n_rows; ++row) {
      processors_.append_edits(static_cast<int32_t>(row), samples_[running_[row]], request.edits);
    }
    return request;
  }

  std::vector<NextRow> advance(std::span<const Candidates> rows) override {
    std::vector<NextRow> next;
    std::vector<size_t> still_running;
    std::vector<Choice> choices;
    for (size_t i = 0; i < running_.size(); ++i) {
      const size_t row = step_ == 0 ? 0 : i;  // the prompt's row serves all samples
      if (step_ != 0 || i == 0) choices = warp(config_, rows[row]);
      auto& sample = samples_[running_[i]];
      const int32_t token = draw(choices, running_[i]);
      sample.append(token);
      const bool full = processors_.padded_length(sample.ids().size()) >= processors_.max_length();
      if (full || stop_.ends(sample.ids())) continue;
      still_running.push_back(running_[i]);
      next.push_back({.parent = static_cast<int32_t>(row), .token = token});
    }
    running_ = std::move(still_running);
    ++step_;
    return next;
  }

  std::vector<Generated> results() const override {
    std::vector<Generated> results;
    for (const auto& sample : samples_) {
      const auto& ids = sample.ids();
      results.emplace_back().ids.assign(ids.begin() + static_cast<ptrdiff_t>(n_prompt_), ids.end());
    }
    return results;
  }

  int64_t max_rows() const override { return config_.num_return_sequences; }
  int64_t max_new_tokens() const override {
    return processors_.max_length() - processors_.padded_length(n_prompt_);
  }

 private:
  int32_t draw(const std::vector<Choice>& choices, size_t sample) const {
    if (choices.empty()) {
      fail(ErrorKind::kRecord,
           "sampling: at new token {} no token of {} has a probability; the options forbid all, or "
           "the model's logits are not finite",
           step_ + 1, vocab_size_);
    }
    return choose(choices, uniform({.seed = config_.seed,
                                    .ordinal = ordinal_,
                                    .lane = static_cast<uint32_t>(sample),
                                    .step = step_}));
  }

  GenerationConfig config_;
  LogitsProcessors processors_;
  StopRule stop_;
  uint64_t ordinal_;
  int64_t vocab_size_;
  size_t n_prompt_;
  std::vector<TokenHistory> samples_;
  std::vector<size_t> running_;  // of samples_, in the order of the rows
  uint32_t step_ = 0;
};

}  // namespace

int32_t choose(const std::vector<Choice>& choices, double u) {
  double sum = 0;
  for (const auto& choice : choices) {
    sum += choice.probability;
    if (u < sum) return choice.token;
  }
  // The sum may end a rounding below 1.
  return choices.back().token;
}

std::unique_ptr<Search> make_sampling(const GenerationConfig& config, const SearchInput& input) {
  return std::make_unique<Sampling>(config, input);
}

}  // namespace quintet
