#include "engine/embed.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <unordered_set>
#include <utility>

#include "core/error.h"
#include "engine/batch_error.h"
#include "engine/feeder.h"
#include "engine/identity.h"
#include "engine/loaded_encoder.h"
#include "engine/named_files.h"
#include "engine/stage_stats.h"
#include "input/reader.h"
#include "output/paths.h"
#include "output/writer.h"
#include "pipeline/trace.h"

namespace quintet {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

void check_options(const Options& options) {
  if (options.input.empty()) fail(ErrorKind::kUsage, "--input is missing: a file, or - for stdin");
  if (options.output.empty()) {
    fail(ErrorKind::kUsage, "--output is missing: a .h5, .npy, .safetensors or .jsonl file, or -");
  }
  if (options.overwrite && options.resume) {
    fail(ErrorKind::kUsage, "--overwrite and --resume exclude each other");
  }
  if (options.normalize && !options.pool) {
    fail(ErrorKind::kUsage, "--normalize is for pooled vectors; add --pool mean, first or last");
  }
  if (options.resume && options.input == "-") {
    fail(ErrorKind::kUsage, "--resume needs an --input that can be read again, not -");
  }
  check_named_files(options);
}

// The embed job's parts, in the order in which they come to be; destroyed the other way round.
class EmbedJob {
 public:
  EmbedJob(const Options& options, const EmbedEvents& events, const std::atomic<bool>& stop)
      : options_(options), events_(events), stop_(stop) {}

  EmbedResult run(Clock::time_point started);

 private:
  bool prepare(EmbedResult& result);
  void check_files() const;
  Layout lay_out() const;
  void load();
  void compute(EmbedResult& result, Clock::time_point first_record);
  void deliver(const BatchResult& result);
  JobProgress progress(uint64_t tokens_done, double seconds) const;
  void note(const std::string& line) const {
    if (events_.on_note) events_.on_note(line);
  }

  const Options& options_;
  const EmbedEvents& events_;
  const std::atomic<bool>& stop_;

  EncoderFolder folder_;
  std::unique_ptr<Reader> reader_;
  std::unique_ptr<RecordEncoder> encoder_;
  OutputOptions output_options_;
  std::unique_ptr<Output> output_;
  std::unordered_set<uint64_t> rejected_before_;  // by earlier runs
  Layout layout_;
  std::unique_ptr<Trace> trace_;
  std::unique_ptr<LoadedEncoder> loaded_;
  std::unique_ptr<OrderedSink> sink_;
  std::unique_ptr<Pipeline> pipeline_;
  std::unique_ptr<Feeder> feeder_;
};

// No file that is written may be another one, the input, or part of the model.
void EmbedJob::check_files() const {
  std::vector<NamedPath> files = output_files(output_options_);
  files.push_back({"--stats", options_.stats});
  files.push_back({"--trace", options_.trace});
  for (const NamedPath& file : files) {
    if (!file.path.empty()) check_writable(file.path, file.option);
  }
  files.push_back({"--input", options_.input, true});
  files.push_back({"--model", options_.model, true});
  check_no_clash(files);
}

// Everything that can be refused before a weight is read. False: there is nothing left to do.
bool EmbedJob::prepare(EmbedResult& result) {
  check_options(options_);
  folder_ = EncoderFolder::open(options_.model);
  reader_ = open_reader(options_.input, options_.input_format);
  encoder_ =
      std::make_unique<RecordEncoder>(options_, reader_->format(), folder_.model->vocab_size());
  const DType dtype = options_.dtype.value_or(folder_.model->stored_dtype(*folder_.checkpoint));
  output_options_ = {
      .path = options_.output,
      .format =
          options_.output_format ? *options_.output_format : output_format_of(options_.output),
      .layout = options_.layout,
      .dtype = options_.output_dtype.value_or(
          options_.layout == Hdf5Layout::kTmbed ? DType::kFloat16 : DType::kFloat32),
      .pooled = options_.pool.has_value(),
      .d_model = folder_.model->d_model(),
      .fingerprint = run_identity(options_, *folder_.checkpoint, encoder_->reading(), dtype)};
  check_output_options(output_options_);
  check_files();
  const Existing existing = options_.resume      ? Existing::kResume
                            : options_.overwrite ? Existing::kOverwrite
                                                 : Existing::kRefuse;
  output_ = open_output(output_options_, existing, [this](const SpooledRecord& record) {
    if (record.rejected) rejected_before_.insert(record.ordinal);
  });
  if (output_->complete()) {
    result.was_complete = true;
    result.total = output_->counts();
    return false;
  }
  if (output_->torn_bytes() > 0) {
    note(fmt::format("cut {} bytes of a half-written record off {}.spool", output_->torn_bytes(),
                     options_.output));
  }
  layout_ = lay_out();
  if (events_.on_layout) events_.on_layout(layout_);
  if (!layout_.plan.fits) {
    fail(ErrorKind::kMemory, "{}; {}", layout_.plan.problem, layout_.plan.advice);
  }
  if (!options_.trace.empty()) trace_ = std::make_unique<Trace>(options_.trace);
  for (const auto& line : folder_.notes) note(line);
  return true;
}

// For the records that will come, without those that no layout has room for: they are rejected when
// they come, and the others go on.
Layout EmbedJob::lay_out() const {
  ExpectedRecords expected = expected_records(options_, *folder_.model, false);
  Layout layout = make_layout(folder_, options_, expected);
  if (layout.plan.fits) return layout;
  Layout short_ones = make_layout(folder_, options_, {.lengths = {1}});
  if (!short_ones.plan.fits) return layout;
  std::erase_if(expected.lengths,
                [&](int32_t n_tokens) { return n_tokens > short_ones.longest_that_fits; });
  if (expected.lengths.empty()) return short_ones;
  Layout without_long_ones = make_layout(folder_, options_, expected);
  return without_long_ones.plan.fits ? without_long_ones : short_ones;
}

void EmbedJob::load() {
  loaded_ = std::make_unique<LoadedEncoder>(folder_, layout_.map, layout_.dtype,
                                            OpenOptions{.threads = options_.threads});
  sink_ = std::make_unique<OrderedSink>(
      *output_, OrderedSink::Options{.d_model = folder_.model->d_model(),
                                     .pooled = options_.pool.has_value(),
                                     .drop_masked_rows = options_.drop_masked_rows,
                                     .on_reject = events_.on_reject,
                                     .trace = trace_.get()});
  pipeline_ = loaded_->start({.pooling = options_.pool,
                              .normalize = options_.normalize,
                              .lend = options_.lend_cores,
                              .trace = trace_.get()});
  feeder_ = std::make_unique<Feeder>(Feeder::Setup{
      .options = &options_,
      .output_options = &output_options_,
      .reader = reader_.get(),
      .encoder = encoder_.get(),
      .sink = sink_.get(),
      .pipeline = pipeline_.get(),
      .stop = &stop_,
      .first_ordinal = output_->next_ordinal(),
      .rejected_before = &rejected_before_,
      .why_too_long =
          [this](int64_t n_tokens) { return why_too_long(*folder_.model, layout_, n_tokens); },
      .tokens_per_batch = layout_.profile.tokens_per_batch,
      .share_equal_sequences = output_->shares_values(),
      .trace = trace_.get()});
}

void EmbedJob::deliver(const BatchResult& result) {
  const MicroBatch& batch = result.batch;
  const auto width = static_cast<size_t>(folder_.model->d_model());
  const std::span<const float> rows(result.rows.data(), result.rows.size());
  for (int64_t s = 0; s < batch.n_seqs(); ++s) {
    const bool pooled = options_.pool.has_value();
    const auto begin = static_cast<size_t>(pooled ? s : batch.pool_begin[s]);
    const auto end = static_cast<size_t>(pooled ? s + 1 : batch.pool_end[s]);
    sink_->complete(batch.ordinals[s], rows.subspan(begin * width, (end - begin) * width));
  }
}

// What has been read is ahead of what is finished by the records under way, in tokens.
JobProgress EmbedJob::progress(uint64_t tokens_done, double seconds) const {
  const SinkCounts counts = sink_->counts();
  JobProgress progress{
      .records = counts.embedded + counts.rejected, .tokens = tokens_done, .seconds = seconds};
  const auto total = static_cast<double>(reader_->bytes_total());
  if (total == 0) return progress;
  const double finished = static_cast<double>(tokens_done) /
                          static_cast<double>(std::max(tokens_done, feeder_->tokens()));
  progress.share_before = static_cast<double>(feeder_->bytes_resumed()) / total;
  const double share_read = std::min(1.0, static_cast<double>(feeder_->bytes_read()) / total);
  progress.share = progress.share_before + (share_read - progress.share_before) * finished;
  return progress;
}

// Reads and computes until the input ends. Whatever throws, on either thread, stops both.
void EmbedJob::compute(EmbedResult& result, Clock::time_point first_record) {
  std::exception_ptr reading_failed;
  std::jthread reading([&] {
    try {
      feeder_->run();
    } catch (...) {
      reading_failed = std::current_exception();
      pipeline_->abort();
    }
    if (stop_) pipeline_->abort();
  });
  uint64_t tokens_done = 0;
  try {
    while (auto batch = pipeline_->pop()) {
      deliver(*batch);
      if (stop_) break;
      if (events_.on_progress) {
        tokens_done += static_cast<uint64_t>(batch->batch.n_tokens());
        events_.on_progress(progress(tokens_done, seconds_since(first_record)));
      }
    }
  } catch (const BatchError& error) {
    pipeline_->abort();
    reading.join();
    fail_with_records(error, [this](uint64_t ordinal) { return sink_->id_of(ordinal); });
  } catch (...) {
    pipeline_->abort();
    throw;
  }
  if (stop_) pipeline_->abort();
  reading.join();
  if (reading_failed) std::rethrow_exception(reading_failed);
  result.stages = pipeline_->stats();
}

EmbedResult EmbedJob::run(Clock::time_point started) {
  EmbedResult result;
  if (!prepare(result)) return result;
  result.failed_before = output_->counts().rejected;
  load();
  result.load_seconds = seconds_since(started);
  const Clock::time_point first_record = Clock::now();
  try {
    compute(result, first_record);
  } catch (...) {
    output_->flush();
    throw;
  }
  if (stop_) {
    output_->flush();
    fail(ErrorKind::kInterrupted,
         "interrupted; {} records are safe, --resume goes on with the next",
         output_->counts().embedded + output_->counts().rejected);
  }
  result.records_seen = feeder_->records_seen();
  result.resumed = feeder_->resumed();
  result.computed = feeder_->computed();
  result.tokens = feeder_->tokens();
  result.counts = sink_->counts();
  result.notes = encoder_->notes();
  if (result.records_seen == 0 && options_.shard_count == 1) {
    fail(ErrorKind::kUsage, "{}: no records", options_.input);
  }
  const TraceTrack::Time finished = sink_->track().now();
  result.total = output_->finish();
  sink_->track().add("build", finished);
  if (trace_ != nullptr) {
    pipeline_.reset();  // its threads write to the trace
    trace_->close();
  }
  result.seconds = seconds_since(first_record);
  for (const StagePlan& stage : layout_.plan.stages) {
    result.planned_peak_bytes += stage.needed_bytes();
  }
  result.measured_peak_bytes = peak_resident_bytes();
  return result;
}

}  // namespace

EmbedResult run_embed(const Options& options, const EmbedEvents& events,
                      const std::atomic<bool>& stop, Clock::time_point started) {
  return EmbedJob(options, events, stop).run(started);
}

std::string stats_json(const EmbedResult& result) {
  nlohmann::ordered_json stats;
  stats["records"] = result.computed;
  stats["tokens"] = result.tokens;
  stats["seconds"] = result.seconds;
  stats["tokens_per_second"] =
      result.seconds > 0 ? static_cast<double>(result.tokens) / result.seconds : 0.0;
  stats["load_seconds"] = result.load_seconds;
  stats["records_seen"] = result.records_seen;
  stats["resumed"] = result.resumed;
  stats["shared"] = result.counts.same;
  stats["embedded"] = result.total.embedded;
  stats["rejected"] = result.total.rejected;
  stats["planned_peak_bytes"] = result.planned_peak_bytes;
  stats["measured_peak_bytes"] = result.measured_peak_bytes;
  stats["stages"] = stages_json(result.stages, result.seconds);
  return stats.dump(2) + "\n";
}

}  // namespace quintet
