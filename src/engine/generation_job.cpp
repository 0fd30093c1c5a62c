#include "engine/generation_job.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.h"
#include "core/json.h"
#include "engine/batch_error.h"
#include "engine/identity.h"
#include "engine/layout.h"
#include "engine/stage_stats.h"

namespace quintet {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;
using nlohmann::ordered_json;

// The caches are sized for these records; generating is so much slower than reading that nearly
// always all of them are read.
constexpr size_t kSampledRecords = 100000;
constexpr int32_t kUsualLength = 64;  // tokens of a prompt

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Options of the command line: numbers, true, false and lists are JSON, all else is a string.
json option_values(const Options& options) {
  json values = json::object();
  for (const auto& [name, text] : options.generation) {
    json value = json::parse(text, nullptr, false);
    values[name] = value.is_discarded() ? json(text) : std::move(value);
  }
  return values;
}

}  // namespace

bool plans_generation(const Options& options) {
  if (!options.generation.empty() || !options.generation_config.empty()) return true;
  if (options.batch_size > 0) return true;
  return is_decoder_alone(options.model);
}

GenerationConfig generation_config_of(const Options& options, const GenerationFolder& folder) {
  GenerationConfig config = load_generation_config(options.model);
  if (!options.generation_config.empty()) {
    apply_generation_options(config, parse_json_file(options.generation_config),
                             options.generation_config);
  }
  apply_generation_options(config, option_values(options), "command line");
  check_generation_config(config, folder.decoder->vocab_size());
  return config;
}

ExpectedPrompts expected_prompts(const Options& options, const GenerationFolder& folder,
                                 const GenerationConfig& config, bool scored) {
  const bool reads_encoder = folder.decoder->reads_encoder();
  ExpectedPrompts expected;
  const auto add = [&](size_t source, size_t decoder) {
    if (reads_encoder) expected.source_lengths.push_back(static_cast<int32_t>(source));
    expected.prompt_lengths.push_back(static_cast<int32_t>(decoder));
  };
  for (const int32_t length : options.lengths) {
    add(static_cast<size_t>(length), reads_encoder ? 1 : static_cast<size_t>(length));
  }
  if (!options.input.empty() && std::filesystem::is_regular_file(options.input)) {
    const auto reader =
        open_reader(options.input, options.input_format, RecordFields::kSourceAndTarget);
    PromptReader prompts(options, reader->format(), folder, config);
    Record record;
    size_t n_read = 0;
    bool more = true;
    while (n_read < kSampledRecords && (more = reader->next(record))) {
      ++n_read;
      if (!record.rejected.empty()) continue;
      if (scored) {
        const ScoredPrompt prompt = prompts.read_scored(record, !options.choices.empty());
        const ForwardItem& item = prompt.item;
        if (prompt.rejected.empty()) add(item.source.tokens.size(), item.decoder.tokens.size());
      } else {
        const Prompt prompt = prompts.read(record);
        if (prompt.rejected.empty()) add(prompt.source.tokens.size(), prompt.tokens.size());
      }
    }
    const double share = reader->bytes_total() == 0
                             ? 0.0
                             : static_cast<double>(reader->bytes_read()) /
                                   static_cast<double>(reader->bytes_total());
    const auto n = static_cast<double>(n_read);
    expected.n_records = static_cast<int64_t>(more && share > 0 ? n / share : n);
  }
  if (expected.prompt_lengths.empty()) add(kUsualLength, reads_encoder ? 1 : kUsualLength);
  return expected;
}

// Everything that can be refused before a weight is read. False: there is nothing left to do.
bool GenerationJob::prepare(LineJobResult& result) {
  LineJob::Events events = events_;
  events.is_impossible = [this](const Record& record) {
    const EncodingNotes notes = prompts_->notes();
    const bool impossible = is_impossible(record);
    prompts_->forget_since(notes);
    return impossible;
  };
  job_ = std::make_unique<LineJob>(options_, std::move(events));
  folder_ = GenerationFolder::open(options_.model);
  config_ = generation_config_of(options_, folder_);
  prompts_ = std::make_unique<PromptReader>(options_, job_->format(), folder_, config_);
  check();
  const DType dtype = options_.dtype.value_or(folder_.stored_dtype());
  const std::string identity =
      generation_identity(options_, kind(), *folder_.checkpoint, prompts_->reading(), dtype);
  if (!job_->open(identity, folder_.decoder->vocab_size())) {
    result.was_complete = true;
    result.total = job_->counts();
    return false;
  }
  layout_ = make_generation_layout(
      folder_, options_, config_, expected_prompts(options_, folder_, config_, scores()), scores());
  if (events_.on_layout) events_.on_layout(layout_);
  if (!layout_.plan.fits) {
    fail(ErrorKind::kMemory, "{}; {}", layout_.plan.problem, layout_.plan.advice);
  }
  if (!options_.trace.empty()) trace_ = std::make_unique<Trace>(options_.trace);
  job_->trace_to(trace_.get());
  if (events_.on_note) {
    for (const auto& line : folder_.notes) events_.on_note(line);
  }
  return true;
}

void GenerationJob::load() {
  loaded_ = std::make_unique<LoadedGenerationModel>(folder_, layout_.maps, layout_.dtype,
                                                    OpenOptions{.threads = options_.threads});
  loaded_->reserve(layout_.pages());
  ring_ = loaded_->start({.lend = options_.lend_cores, .trace = trace_.get()});
}

LineJobResult GenerationJob::run(Clock::time_point started) {
  LineJobResult result;
  if (!prepare(result)) return result;
  load();
  result.load_seconds = seconds_since(started);
  const Clock::time_point first_record = Clock::now();
  try {
    compute(result);
  } catch (const BatchError& error) {
    job_->flush();
    fail_with_records(error, [this](uint64_t ordinal) { return job_->lines().id_of(ordinal); });
  } catch (...) {
    job_->flush();
    throw;
  }
  if (stop_) {
    job_->flush();
    fail(ErrorKind::kInterrupted,
         "interrupted; {} records are safe, --resume goes on with the next",
         job_->counts().embedded + job_->counts().rejected);
  }
  result.stages = ring_->stats();
  result.records_seen = job_->records_seen();
  result.resumed = job_->resumed();
  result.failed_before = job_->failed_before();
  result.counts = job_->lines().counts();
  result.notes = prompts_->notes();
  result.total = job_->finish();
  ring_.reset();  // its threads write to the trace
  if (trace_ != nullptr) trace_->close();
  result.seconds = seconds_since(first_record);
  result.planned_peak_bytes = layout_.planned_peak_bytes();
  result.measured_peak_bytes = peak_resident_bytes();
  return result;
}

std::string stats_json(const LineJobResult& result) {
  ordered_json stats;
  stats["records"] = result.counts.embedded;
  stats["prompt_tokens"] = result.prompt_tokens;
  stats["new_tokens"] = result.new_tokens;
  stats["seconds"] = result.seconds;
  stats["new_tokens_per_second"] =
      result.seconds > 0 ? static_cast<double>(result.new_tokens) / result.seconds : 0.0;
  stats["load_seconds"] = result.load_seconds;
  stats["records_seen"] = result.records_seen;
  stats["resumed"] = result.resumed;
  stats["rejected"] = result.total.rejected;
  stats["planned_peak_bytes"] = result.planned_peak_bytes;
  stats["measured_peak_bytes"] = result.measured_peak_bytes;
  stats["stages"] = stages_json(result.stages, result.seconds);
  return stats.dump(2) + "\n";
}

}  // namespace quintet
