#include "generation/greedy.h"

#include "generation/logits_processors.h"
#include "generation/stop.h"
#include "generation/token_history.h"

namespace quintet {
namespace {

class Greedy : public Search {
 public:
  Greedy(const GenerationConfig& config, const SearchInput& input)
      : processors_(config, input),
        stop_(config, input),
        history_(input.prompt),
        n_prompt_(input.prompt.size()) {}

  SearchRequest request() const override {
    SearchRequest request;
    processors_.append_edits(0, history_, request.edits);
    return request;
  }

  std::vector<NextRow> advance(std::span<const Candidates> rows) override {
    const int32_t token = rows.front().ids.front();
    history_.append(token);
    const bool full = processors_.padded_length(history_.ids().size()) >= processors_.max_length();
    if (full || stop_.ends(history_.ids())) return {};
    return {{.parent = 0, .token = token}};
  }

  std::vector<Generated> results() const override {
    const auto& ids = history_.ids();
    Generated generated;
    generated.ids.assign(ids.begin() + static_cast<ptrdiff_t>(n_prompt_), ids.end());
    return {generated};
  }

  int64_t max_rows() const override { return 1; }
  int64_t max_new_tokens() const override {
    return processors_.max_length() - processors_.padded_length(n_prompt_);
  }

 private:
  LogitsProcessors processors_;
  StopRule stop_;
  TokenHistory history_;
  size_t n_prompt_;
};

}  // namespace

std::unique_ptr<Search> make_greedy(const GenerationConfig& config, const SearchInput& input) {
  return std::make_unique<Greedy>(config, input);
}

}  // namespace quintet
