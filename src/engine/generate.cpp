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
  void compute(LineJobResult& result) override;

 private:
  std::optional<GenerationTask> next_task();
  std::string lines_of(const GenerationResult& result) const;
  void stream(int32_t token);

  const GenerateEvents& events_;
  std::unordered_map<uint64_t, std::string> ids_;  // of the records under way
  std::unique_ptr<StreamDecoder> stream_;
  uint64_t records_done_ = 0;
  uint64_t prompt_tokens_ = 0;
  uint64_t new_tokens_ = 0;
};

std::optional<GenerationTask> GenerateJob::next_task() {
  while (auto record = job().next()) {
    Prompt prompt = prompts().read(*record);
    if (!prompt.rejected.empty()) {
      job().reject(*record, std::move(prompt.rejected), !(prompt.empty && options().skip_empty));
      continue;
    }
    GenerationTask task;
    task.ordinal = record->ordinal;
    SearchInput input;
    input.ordinal = record->ordinal;
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
    try {
      task.search = make_search(config(), std::move(input));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kRecord) throw;
      job().reject(*record, error.what());
      continue;
    }
    prompt_tokens_ += prompt.source.tokens.size() + prompt.tokens.size();
    ids_[record->ordinal] = record->id;
    task.source = std::move(prompt.source);
    task.prompt = std::move(prompt.tokens);
    return task;
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

void GenerateJob::stream(int32_t token) {
  if (stream_ == nullptr) return;
  events_.on_text(stream_->push(token));
}

void GenerateJob::compute(LineJobResult& result) {
  if (options().stream) {
    if (prompts().tokenizer() == nullptr) {
      fail(ErrorKind::kUsage, "--stream needs the files of a tokenizer in {}", options().model);
    }
    if (config().num_beams > 1 || config().num_return_sequences > 1) {
      fail(ErrorKind::kUsage, "--stream is for one sequence, not for beams or several results");
    }
    stream_ = std::make_unique<StreamDecoder>(prompts().tokenizer()->stream_decoder(
        {.skip_special_tokens = options().skip_special_tokens}));
  }
  GeneratorOptions generator_options = layout().generator();
  Generator generator(ring(), generator_options);
  Generator::Events events;
  events.next = [&] { return next_task(); };
  events.done = [&](GenerationResult done) {
    for (const Generated& sequence : done.sequences) new_tokens_ += sequence.ids.size();
    if (done.rejected.empty()) {
      job().lines().complete(done.ordinal, lines_of(done));
    } else {
      job().lines().reject(done.ordinal, std::move(done.rejected));
    }
    ids_.erase(done.ordinal);
    job().show_progress(new_tokens_, ++records_done_);
  };
  if (stream_ != nullptr && events_.on_text) {
    events.token = [&](uint64_t /*ordinal*/, int32_t token) { stream(token); };
  }
  generator.run(events, stop());
  if (stream_ != nullptr) events_.on_text(stream_->flush());
  result.prompt_tokens = prompt_tokens_;
  result.new_tokens = new_tokens_;
}

}  // namespace

LineJobResult run_generate(const Options& options, const GenerateEvents& events,
                           const std::atomic<bool>& stop, Clock::time_point started) {
  return GenerateJob(options, events, stop).run(started);
}

}  // namespace quintet
