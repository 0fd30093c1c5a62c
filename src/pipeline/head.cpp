#include "pipeline/head.h"

#include <algorithm>
#include <cassert>
#include <span>

#include "ops/logits.h"

namespace quintet {

// Rows [first, first + count) of the selected ones.
struct Head::Tile {
  int64_t first = 0;
  int64_t count = 0;

  bool has(int32_t row) const { return row >= first && row < first + count; }
};

StepResult Head::run(const Tensor& hidden, const std::vector<int32_t>& selected,
                     const LogitRequest& request) {
  assert(request.pick_rows.size() == request.pick_tokens.size());
  StepResult result;
  result.n_selected = static_cast<int64_t>(selected.size());
  if (request.hidden) {
    copy_hidden(hidden, selected, result);
    return result;
  }
  const auto n_best = static_cast<size_t>(result.n_selected * request.top_k);
  result.ids.resize(n_best);
  result.values.resize(n_best);
  result.picks.resize(request.pick_rows.size());
  for (Tile tile; tile.first < result.n_selected; tile.first += tile.count) {
    tile.count = std::min(rows_per_tile(), result.n_selected - tile.first);
    run_tile(hidden, selected, request, tile, result);
  }
  return result;
}

int64_t Head::rows_per_tile() const {
  constexpr int64_t kLeastRows = 64;  // fewer would read the head's weights too often
  constexpr int64_t kBytes = int64_t{32} << 20;
  if (vocab_size_ == 0) return kLeastRows;
  return std::max(kLeastRows, kBytes / (vocab_size_ * static_cast<int64_t>(sizeof(float))));
}

void Head::run_tile(const Tensor& hidden, const std::vector<int32_t>& selected,
                    const LogitRequest& request, Tile tile, StepResult& result) {
  const auto begin = selected.begin() + tile.first;
  const Tensor logits = stage_.logits(hidden, {begin, begin + tile.count});
  assert(logits.rows() == tile.count);
  vocab_size_ = logits.cols();

  if (request.log_softmax) ops::log_softmax(device_, logits);
  std::vector<LogitEdit> edits;
  for (LogitEdit edit : request.edits) {
    if (!tile.has(edit.row)) continue;
    edit.row -= static_cast<int32_t>(tile.first);
    edits.push_back(edit);
  }
  if (!edits.empty()) ops::edit(device_, edits, logits);

  if (request.top_k > 0) {
    const ops::Best best = ops::top_k(device_, logits, request.top_k);
    const auto at = static_cast<ptrdiff_t>(tile.first * request.top_k);
    std::copy(best.ids.begin(), best.ids.end(), result.ids.begin() + at);
    std::copy(best.values.begin(), best.values.end(), result.values.begin() + at);
  }
  if (request.rows) {
    const auto cols = static_cast<size_t>(vocab_size_);
    result.rows.resize(selected.size() * cols);
    device_.download(logits, result.rows.data() + static_cast<size_t>(tile.first) * cols);
  }

  std::vector<size_t> places;  // of this tile's picks
  std::vector<int32_t> rows;
  std::vector<int32_t> tokens;
  for (size_t i = 0; i < request.pick_rows.size(); ++i) {
    if (!tile.has(request.pick_rows[i])) continue;
    places.push_back(i);
    rows.push_back(request.pick_rows[i] - static_cast<int32_t>(tile.first));
    tokens.push_back(request.pick_tokens[i]);
  }
  if (places.empty()) return;
  if (request.picks_log_softmax) ops::log_softmax(device_, logits);
  const std::vector<float> picks = ops::pick(device_, logits, rows, tokens);
  for (size_t i = 0; i < places.size(); ++i) result.picks[places[i]] = picks[i];
}

void Head::copy_hidden(const Tensor& hidden, const std::vector<int32_t>& selected,
                       StepResult& result) {
  const auto cols = static_cast<size_t>(hidden.cols());
  result.rows.resize(selected.size() * cols);
  for (size_t begin = 0; begin < selected.size();) {  // one run of neighbours at a time
    size_t end = begin + 1;
    while (end < selected.size() && selected[end] == selected[end - 1] + 1) ++end;
    device_.download(hidden.rows(selected[begin], static_cast<int64_t>(end - begin)),
                     result.rows.data() + begin * cols);
    begin = end;
  }
}

}  // namespace quintet
