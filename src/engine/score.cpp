#include "engine/score.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>

#include "core/error.h"
#include "engine/forward_batch.h"
#include "engine/generation_job.h"
#include "engine/sequence.h"

namespace quintet {
namespace {

using nlohmann::ordered_json;

// Records that are computed together.
struct ScoreBatch {
  std::vector<Record> records;
  std::vector<ScoredPrompt> prompts;  // their sequences: in `forward`
  std::vector<size_t> n_rows;         // of each record in the decoder
  ForwardBatch forward;
  int32_t slot = 0;  // whose pages it has
};

// Batches go round in slots: each has its own run of pages in the cross caches, so many batches are
// under way.
class ScoreJob : public GenerationJob {
 public:
  using GenerationJob::GenerationJob;

 protected:
  std::string kind() const override { return "score"; }
  bool scores() const override { return true; }
  void check() override { read_choices(); }
  bool is_impossible(const Record& record) override {
    return !prompts().read_scored(record, with_choices()).rejected.empty();
  }
  void compute(LineJobResult& result) override;

 private:
  bool with_choices() const { return !choice_ids_.empty(); }
  void read_choices();
  bool read_next();
  std::optional<ScoreBatch> next_batch();
  void submit(ScoreBatch batch);
  void submit_step(uint64_t tag, std::vector<Tensor> sources);
  LogitRequest request_for(const ScoreBatch& batch) const;
  void deliver(const StepResult& result);
  std::string line_of(const Record& record, const ScoredPrompt& prompt,
                      std::span<const float> picks) const;

  std::vector<std::string> choice_pieces_;
  std::vector<int32_t> choice_ids_;
  std::unordered_map<uint64_t, ScoreBatch> under_way_;  // by tag
  std::vector<int32_t> free_slots_;
  int64_t pages_per_slot_ = 0;
  std::optional<std::pair<Record, ScoredPrompt>> read_;  // for the next batch
  uint64_t next_tag_ = 0;
  uint64_t prompt_tokens_ = 0;
  uint64_t scored_tokens_ = 0;
  uint64_t records_done_ = 0;
};

void ScoreJob::read_choices() {
  std::string_view left = options().choices;
  while (!left.empty()) {
    const size_t comma = std::min(left.find(','), left.size());
    const std::string piece(left.substr(0, comma));
    left.remove_prefix(std::min(comma + 1, left.size()));
    const Tokenizer* tokenizer = prompts().tokenizer();
    if (tokenizer == nullptr) {
      fail(ErrorKind::kUsage, "--choices needs the files of a tokenizer in {}", options().model);
    }
    const auto id = tokenizer->find(piece);
    if (!id || *id >= folder().decoder->vocab_size()) {
      fail(ErrorKind::kUsage,
           "--choices: '{}' is no piece of the vocabulary; quintet tokenize shows the pieces of a "
           "text (a word's first piece usually begins with a mark, such as '\u2581yes')",
           piece);
    }
    choice_pieces_.push_back(piece);
    choice_ids_.push_back(*id);
  }
}

// The next record that can be computed to read_; false at the end of the input.
bool ScoreJob::read_next() {
  const TraceTrack::Time begin = job().reader_track().now();
  while (!read_) {
    auto record = job().next();
    if (!record) return false;
    ScoredPrompt prompt = prompts().read_scored(*record, with_choices());
    if (prompt.rejected.empty() && prompt.item.cross_pages() > pages_per_slot_) {
      // The id stays taken: another layout may have room for it.
      job().lines().reject(
          record->ordinal,
          fmt::format("{} encoder tokens do not fit into the caches, which were laid out for {}; a "
                      "wider --max-memory or --tokens-per-batch makes room",
                      prompt.item.source.tokens.size(), pages_per_slot_ * kPageTokens));
      continue;
    }
    if (!prompt.rejected.empty()) {
      job().reject(*record, std::move(prompt.rejected), !(prompt.empty && options().skip_empty));
      continue;
    }
    job().reader_track().add("read", begin,
                             static_cast<int64_t>(prompt.item.decoder.tokens.size()));
    read_.emplace(std::move(*record), std::move(prompt));
  }
  return true;
}

std::optional<ScoreBatch> ScoreJob::next_batch() {
  ScoreBatch batch;
  const int64_t most = layout().profile.prompt_tokens_per_step;
  ForwardBatch& forward = batch.forward;
  while (read_next()) {
    ScoredPrompt& prompt = read_->second;
    const auto n_tokens = static_cast<int64_t>(prompt.item.decoder.tokens.size());
    const auto n_source_tokens = static_cast<int64_t>(prompt.item.source.tokens.size());
    const bool full = forward.n_tokens() + n_tokens > most ||
                      forward.n_source_tokens() + n_source_tokens > most ||
                      forward.cross_pages() + prompt.item.cross_pages() > pages_per_slot_;
    if (full && !forward.empty()) break;
    batch.n_rows.push_back(prompt.item.decoder.tokens.size());
    forward.add(std::exchange(prompt.item, {}));
    batch.records.push_back(std::move(read_->first));
    batch.prompts.push_back(std::move(prompt));
    read_.reset();
  }
  if (forward.empty()) return std::nullopt;
  return batch;
}

void ScoreJob::submit(ScoreBatch batch) {
  const uint64_t tag = next_tag_++;
  batch.slot = free_slots_.back();
  free_slots_.pop_back();
  prompt_tokens_ +=
      static_cast<uint64_t>(batch.forward.n_source_tokens() + batch.forward.n_tokens());
  const ForwardBatch& forward = under_way_.emplace(tag, std::move(batch)).first->second.forward;
  if (forward.n_source_tokens() == 0) {
    submit_step(tag, {});
  } else {
    ring().submit(forward.encode_job(tag));
  }
}

LogitRequest ScoreJob::request_for(const ScoreBatch& batch) const {
  LogitRequest request;
  request.rows = !options().logits.empty();
  request.picks_log_softmax = !with_choices();
  int32_t first_row = 0;
  for (size_t r = 0; r < batch.prompts.size(); ++r) {
    const ScoredPrompt& prompt = batch.prompts[r];
    for (size_t i = 0; i < prompt.rows.size(); ++i) {
      const int32_t row = first_row + prompt.rows[i];
      if (with_choices()) {
        for (const int32_t id : choice_ids_) {
          request.pick_rows.push_back(row);
          request.pick_tokens.push_back(id);
        }
      } else {
        request.pick_rows.push_back(row);
        request.pick_tokens.push_back(prompt.labels[i]);
      }
    }
    first_row += static_cast<int32_t>(batch.n_rows[r]);
  }
  return request;
}

void ScoreJob::submit_step(uint64_t tag, std::vector<Tensor> sources) {
  const ScoreBatch& batch = under_way_.at(tag);
  const auto first_page = static_cast<int32_t>(batch.slot * pages_per_slot_);
  StepJob job = batch.forward.step_job(tag, std::move(sources), first_page);
  job.request = request_for(batch);
  ring().submit(std::move(job));
}

std::string ScoreJob::line_of(const Record& record, const ScoredPrompt& prompt,
                              std::span<const float> picks) const {
  ordered_json line;
  line["id"] = record.id;
  if (with_choices()) {
    double sum = 0;
    const double most = *std::ranges::max_element(picks);
    for (const float logit : picks) sum += std::exp(logit - most);
    for (size_t i = 0; i < picks.size(); ++i) {
      line["choices"][choice_pieces_[i]] = picks[i] - most - std::log(sum);
    }
  } else {
    double logprob = 0;
    for (const float value : picks) logprob += value;
    const auto n_tokens = static_cast<double>(picks.size());
    line["tokens"] = prompt.labels;
    line["token_logprobs"] = picks;
    line["logprob"] = logprob;
    line["n_tokens"] = picks.size();
    line["loss"] = picks.empty() ? ordered_json() : ordered_json(-logprob / n_tokens);
    line["perplexity"] =
        picks.empty() ? ordered_json() : ordered_json(std::exp(-logprob / n_tokens));
  }
  return line.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + '\n';
}

void ScoreJob::deliver(const StepResult& result) {
  const auto node = under_way_.extract(result.tag);
  const ScoreBatch& batch = node.mapped();
  free_slots_.push_back(batch.slot);
  const auto width = static_cast<size_t>(folder().decoder->vocab_size());
  std::span<const float> picks = result.picks;
  std::span<const float> rows = result.rows;
  for (size_t i = 0; i < batch.records.size(); ++i) {
    const ScoredPrompt& prompt = batch.prompts[i];
    const size_t n_picks = prompt.rows.size() * (with_choices() ? choice_ids_.size() : 1);
    const std::string line = line_of(batch.records[i], prompt, picks.first(n_picks));
    picks = picks.subspan(n_picks);
    scored_tokens_ += n_picks;
    std::vector<float> logits;
    if (!rows.empty()) {
      const size_t size = batch.n_rows[i] * width;
      logits = unmask_rows(rows.first(size), prompt.mask, width);
      rows = rows.subspan(size);
    }
    const auto n_rows = static_cast<int64_t>(logits.size() / width);
    job().lines().complete(batch.records[i].ordinal, line, std::move(logits), n_rows);
    ++records_done_;
  }
  job().show_progress(prompt_tokens_, records_done_);
}

void ScoreJob::compute(LineJobResult& result) {
  const auto n_slots = static_cast<int32_t>(layout().plan.n_groups);
  pages_per_slot_ = layout().plan.cross_pages / n_slots;
  for (int32_t slot = 0; slot < n_slots; ++slot) free_slots_.push_back(slot);
  while (!stop()) {
    while (!free_slots_.empty()) {
      auto batch = next_batch();
      if (!batch) break;
      submit(std::move(*batch));
    }
    const RingResult done = ring().wait();
    if (!done) break;
    if (done.encode != nullptr) {
      submit_step(done.encode->tag, {std::move(done.encode->rows)});
    } else {
      deliver(*done.step);
    }
  }
  result.prompt_tokens = prompt_tokens_;
  result.new_tokens = scored_tokens_;
}

}  // namespace

LineJobResult run_score(const Options& options, const GenerateEvents& events,
                        const std::atomic<bool>& stop,
                        std::chrono::steady_clock::time_point started) {
  return ScoreJob(options, events, stop).run(started);
}

}  // namespace quintet
