#include "engine/generate.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include "core/error.h"
#include "core/json.h"
#include "engine/generation_job.h"
#include "engine/identity.h"
#include "engine/layout.h"
#include "engine/prompt_reader.h"
#include "generation/generator.h"
#include "tokenizer/stream_decoder.h"
#include "tokenizer/tokenizer.h"

namespace quintet {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::ordered_json;

class GenerateJob : public GenerationJob {
 public:
  GenerateJob(const Options& options, const GenerateEvents& events, const std::atomic<bool>& stop)
      : GenerationJob(options, events, stop), events_(events) {}

 protected:
  std::string kind() const override { return "generate"; }
  bool scores() const override { return false; }
  void check() override;
  bool is_impossible(const Record& record) override;
  void compute(LineJobResult& result) override;

 private:
  std::optional<GenerationTask> next_task();
  GenerationTask task_of(const Record& record, Prompt prompt);
  std::string lines_of(const GenerationResult& result) const;
  void deliver(GenerationResult result);
  void stream(Generator& generator);

  const GenerateEvents& events_;
  std::unordered_map<uint64_t, std::string> ids_;  // of the records under way
  uint64_t records_done_ = 0;
  uint64_t prompt_tokens_ = 0;
  uint64_t new_tokens_ = 0;
};

// Throws Error(kRecord) where the search cannot be made.
GenerationTask GenerateJob::task_of(const Record& record, Prompt prompt) {
  GenerationTask task;
  task.ordinal = record.ordinal;
  SearchInput input;
  input.ordinal = record.ordinal;
  input.prompt = prompt.tokens;
  input.encoder_input = folder().encoder == nullptr ? prompt.tokens : prompt.source.tokens;
  input.padded_prompt_length = prompt.padded_length;
  input.max_positions = folder().decoder->max_positions();
  input.vocab_size = folder().decoder->vocab_size();
  if (!config().stop_strings.empty()) {
    input.decode = [tokenizer = prompts().tokenizer()](std::span<const int32_t> ids) {
      return tokenizer->decode(ids, {.skip_special_tokens = true});
    };
  }
  task.search = make_search(config(), std::move(input));
  task.source = std::move(prompt.source);
  task.prompt = std::move(prompt.tokens);
  return task;
}

bool GenerateJob::is_impossible(const Record& record) {
  Prompt prompt = prompts().read(record);
  if (!prompt.rejected.empty()) return true;
  try {
    task_of(record, std::move(prompt));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kRecord) throw;
    return true;
  }
  return false;
}

std::optional<GenerationTask> GenerateJob::next_task() {
  const TraceTrack::Time begin = job().reader_track().now();
  while (auto record = job().next()) {
    Prompt prompt = prompts().read(*record);
    if (!prompt.rejected.empty()) {
      job().reject(*record, std::move(prompt.rejected), !(prompt.empty && options().skip_empty));
      continue;
    }
    const size_t n_tokens = prompt.source.tokens.size() + prompt.tokens.size();
    try {
      GenerationTask task = task_of(*record, std::move(prompt));
      prompt_tokens_ += n_tokens;
      ids_[record->ordinal] = record->id;
      job().reader_track().add("read", begin, static_cast<int64_t>(n_tokens));
      return task;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kRecord) throw;
      job().reject(*record, error.what());
    }
  }
  return std::nullopt;
}

// One object per returned sequence.
std::string GenerateJob::lines_of(const GenerationResult& result) const {
  const Tokenizer* tokenizer = prompts().tokenizer();
  std::string lines;
  for (const Generated& sequence : result.sequences) {
    ordered_json line;
    line["id"] = ids_.at(result.ordinal);
    line["output_ids"] = sequence.ids;
    if (tokenizer != nullptr) {
      line["text"] =
          tokenizer->decode(sequence.ids, {.skip_special_tokens = options().skip_special_tokens});
    }
    if (sequence.has_score) line["score"] = sequence.score;
    lines += line.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + '\n';
  }
  return lines;
}

void GenerateJob::check() {
  const bool has_tokenizer = prompts().tokenizer() != nullptr;
  if (!config().stop_strings.empty() && !has_tokenizer) {
    fail(ErrorKind::kUsage, "stop_strings need the files of a tokenizer in {}", options().model);
  }
  if (!options().stream) return;
  if (!has_tokenizer) {
    fail(ErrorKind::kUsage, "--stream needs the files of a tokenizer in {}", options().model);
  }
  if (config().num_beams > 1 || config().num_return_sequences > 1) {
    fail(ErrorKind::kUsage, "--stream is for one sequence, not for beams or several results");
  }
}

void GenerateJob::deliver(GenerationResult result) {
  for (const Generated& sequence : result.sequences) new_tokens_ += sequence.ids.size();
  if (result.rejected.empty()) {
    job().lines().complete(result.ordinal, lines_of(result));
  } else {
    job().lines().reject(result.ordinal, std::move(result.rejected));
  }
  ids_.erase(result.ordinal);
  job().show_progress(new_tokens_, ++records_done_);
}

// One record after the other, its text as it comes and a newline behind it.
void GenerateJob::stream(Generator& generator) {
  while (!stop()) {
    std::optional<GenerationTask> task = next_task();
    if (!task) return;
    StreamDecoder text = prompts().tokenizer()->stream_decoder(
        {.skip_special_tokens = options().skip_special_tokens});
    Generator::Events events;
    events.next = [&] { return std::exchange(task, std::nullopt); };
    events.done = [&](GenerationResult result) { deliver(std::move(result)); };
    events.token = [&](uint64_t /*ordinal*/, int32_t token) { events_.on_text(text.push(token)); };
    generator.run(events, stop());
    events_.on_text(text.flush() + "\n");
  }
}

void GenerateJob::compute(LineJobResult& result) {
  Generator generator(ring(), layout().generator());
  if (options().stream) {
    stream(generator);
  } else {
    Generator::Events events;
    events.next = [&] { return next_task(); };
    events.done = [&](GenerationResult done) { deliver(std::move(done)); };
    generator.run(events, stop());
  }
  result.prompt_tokens = prompt_tokens_;
  result.new_tokens = new_tokens_;
}

}  // namespace

LineJobResult run_generate(const Options& options, const GenerateEvents& events,
                           const std::atomic<bool>& stop, Clock::time_point started) {
  return GenerateJob(options, events, stop).run(started);
}

}  // namespace quintet
