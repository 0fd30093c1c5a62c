#include "engine/line_job.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "engine/named_files.h"
#include "output/paths.h"

namespace quintet {

LineJob::LineJob(const Options& options, Events events)
    : options_(options), events_(std::move(events)) {
  if (options.input.empty()) fail(ErrorKind::kUsage, "--input is missing: a file, or - for stdin");
  if (options.output.empty() && !options.stream) {
    fail(ErrorKind::kUsage, "--output is missing: a .jsonl file, or - for standard output");
  }
  if (options.overwrite && options.resume) {
    fail(ErrorKind::kUsage, "--overwrite and --resume exclude each other");
  }
  if (options.resume && (options.input == "-" || options.output.empty())) {
    fail(ErrorKind::kUsage, "--resume needs an --input that can be read again, and an --output");
  }
  if (!options.output.empty() && output_format_of(options.output) != OutputFormat::kJsonl) {
    fail(ErrorKind::kUsage, "--output {}: expected a .jsonl file, or - for standard output",
         options.output);
  }
  check_named_files(options);
  reader_ = open_reader(options.input, options.input_format, RecordFields::kSourceAndTarget);
}

// No file that is written may be another one, the input, or part of the model.
void LineJob::check_files() const {
  std::vector<NamedPath> files = output_files(output_options_);
  if (!options_.logits.empty()) {
    for (NamedPath& file : output_files(logits_options_)) {
      file.option = "--logits";
      files.push_back(std::move(file));
    }
  }
  files.push_back({"--stats", options_.stats});
  files.push_back({"--trace", options_.trace});
  for (const NamedPath& file : files) {
    if (!file.path.empty()) check_writable(file.path, file.option);
  }
  files.push_back({"--input", options_.input, true});
  files.push_back({"--model", options_.model, true});
  check_no_clash(files);
}

bool LineJob::open(const std::string& identity, int64_t logits_width) {
  output_options_ = {
      .path = options_.output, .format = OutputFormat::kLines, .fingerprint = identity};
  if (!options_.output.empty()) check_output_options(output_options_);
  if (!options_.logits.empty()) {
    logits_options_ = {.path = options_.logits,
                       .format = output_format_of(options_.logits),
                       .d_model = logits_width,
                       .fingerprint = identity};
    if (logits_options_.format != OutputFormat::kSafetensors) {
      fail(ErrorKind::kUsage, "--logits {}: expected a .safetensors file", options_.logits);
    }
    check_output_options(logits_options_);
  }
  check_files();
  const Existing existing = options_.resume      ? Existing::kResume
                            : options_.overwrite ? Existing::kOverwrite
                                                 : Existing::kRefuse;
  if (!options_.logits.empty()) logits_ = open_output(logits_options_, existing);
  output_ = open_output(output_options_, existing, [this](const SpooledRecord& record) {
    if (record.rejected) rejected_before_.insert(record.ordinal);
  });
  if (output_->complete() && (logits_ == nullptr || logits_->complete())) return false;
  if (output_->torn_bytes() > 0 && events_.on_note) {
    events_.on_note(fmt::format("cut {} bytes of a half-written record off {}.spool",
                                output_->torn_bytes(), options_.output));
  }
  first_ordinal_ = output_->next_ordinal();
  if (logits_ != nullptr) first_ordinal_ = std::min(first_ordinal_, logits_->next_ordinal());
  // Keys must be free in both files: those of .safetensors forbid more.
  ids_ = std::make_unique<IdBook>(logits_ == nullptr ? output_options_ : logits_options_,
                                  options_.on_duplicate);
  lines_ =
      std::make_unique<OrderedLines>(*output_, logits_.get(), writer_track_, events_.on_reject);
  return true;
}

void LineJob::trace_to(Trace* trace) {
  reader_track_ = TraceTrack(trace, "reader");
  writer_track_ = TraceTrack(trace, "writer");
}

// Another shard's record, or one that is finished: what it did to the ids is all that counts.
void LineJob::pass_over(const Record& record, bool may_be_rejected) {
  if (may_be_rejected && events_.is_impossible(record)) ids_->release(record.id);
}

std::optional<Record> LineJob::next() {
  Record record;
  while (reader_->next(record)) {
    std::string problem = record.rejected;
    bool failure = !(record.empty && options_.skip_empty);
    if (problem.empty()) problem = ids_->take(record.id, failure);
    if (!is_of_shard(options_, record.ordinal)) {
      pass_over(record, problem.empty());
      continue;
    }
    ++records_seen_;
    if (record.ordinal < first_ordinal_) {
      ++resumed_;
      bytes_resumed_ = reader_->bytes_read();
      pass_over(record, problem.empty() && rejected_before_.contains(record.ordinal));
      continue;
    }
    lines_->announce(record);
    if (problem.empty()) return record;
    lines_->reject(record.ordinal, std::move(problem), failure);
  }
  return std::nullopt;
}

void LineJob::reject(const Record& record, std::string reason, bool failure) {
  ids_->release(record.id);
  lines_->reject(record.ordinal, std::move(reason), failure);
}

void LineJob::show_progress(uint64_t tokens, uint64_t records_done) {
  if (!events_.on_progress) return;
  JobProgress progress{
      .records = lines_->counts().embedded + lines_->counts().rejected,
      .tokens = tokens,
      .seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count()};
  const auto total = static_cast<double>(reader_->bytes_total());
  if (total > 0) {
    progress.share_before = static_cast<double>(bytes_resumed_) / total;
    const double read = std::min(1.0, static_cast<double>(reader_->bytes_read()) / total);
    const auto taken = static_cast<double>(std::max<uint64_t>(1, records_seen_ - resumed_));
    progress.share = progress.share_before +
                     (read - progress.share_before) * static_cast<double>(records_done) / taken;
  }
  events_.on_progress(progress);
}

void LineJob::flush() {
  if (logits_ != nullptr) logits_->flush();
  output_->flush();
}

OutputCounts LineJob::finish() {
  if (records_seen_ == 0 && options_.shard_count == 1)
    fail(ErrorKind::kUsage, "{}: no records", options_.input);
  const TraceTrack::Time begin = writer_track_.now();
  if (logits_ != nullptr && !logits_->complete()) logits_->finish();
  const OutputCounts counts = output_->complete() ? output_->counts() : output_->finish();
  writer_track_.add("build", begin);
  return counts;
}

}  // namespace quintet
