#include "commands.h"

#include <fmt/format.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "engine/embed.h"
#include "engine/generation_job.h"
#include "engine/inspect.h"
#include "engine/layout.h"
#include "engine/score.h"
#include "engine/tokenize.h"
#include "placement/generation_report.h"
#include "placement/report.h"
#include "placement/svg.h"
#include "progress.h"
#include "say.h"
#include "stop_signals.h"

namespace quintet {
namespace {

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) fail(ErrorKind::kIo, "{}: cannot write", path);
}

void print(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    fail(ErrorKind::kIo, "cannot write to standard output");
  }
}

std::string records(uint64_t n) { return fmt::format("{} record{}", n, n == 1 ? "" : "s"); }

void print_encoding_notes(const EncodingNotes& notes) {
  if (notes.changed_letters > 0) {
    say("{} letters were upper-cased or read as X\n", notes.changed_letters);
  }
  if (notes.dropped_letters > 0) {
    say("{} gaps, blanks or trailing stops were dropped\n", notes.dropped_letters);
  }
  if (notes.cut_records > 0) {
    say("{} cut by --max-tokens: {} of their {} tokens were kept\n", records(notes.cut_records),
        notes.tokens_kept, notes.tokens_seen);
  }
  if (notes.unknown_tokens > 0) {
    say("{} pieces of the input are not in the vocabulary and were read as <unk>\n",
        notes.unknown_tokens);
  }
}

void print_summary(const Options& options, const EmbedResult& result) {
  if (result.was_complete) {
    say("{} is complete already: {}, {} rejected\n", options.output, records(result.total.embedded),
        result.total.rejected);
    return;
  }
  std::string line =
      fmt::format("{} in {}, {} tokens in {}, {:.0f} tokens/s", records(result.total.embedded),
                  options.output == "-" ? "standard output" : options.output, result.tokens,
                  clock_time(result.seconds),
                  result.seconds > 0 ? static_cast<double>(result.tokens) / result.seconds : 0.0);
  if (result.resumed > 0) line += fmt::format("; {} were there before", result.resumed);
  if (result.counts.same > 0) {
    line += fmt::format("; {} share an equal sequence's rows", result.counts.same);
  }
  say("{}\n", line);
  print_encoding_notes(result.notes);
  if (result.total.rejected > 0) {
    const std::string where =
        options.output == "-" ? "as said above" : "see " + options.output + ".rejects.jsonl";
    say("{} rejected, {}\n", records(result.total.rejected), where);
  }
}

}  // namespace

int command_embed(const Options& options, const Invocation& invocation) {
  // A stream may keep us waiting, and cannot be resumed.
  const StopSignals stop(options.input != "-");
  ProgressBar bar(options.quiet, "tokens");
  EmbedEvents events;
  if (!options.quiet) {
    events.on_layout = [](const Layout& layout) {
      say("{}", plan_table(layout.plan, layout.context));
    };
    events.on_progress = [&](const JobProgress& progress) { bar.show(progress); };
    events.on_note = [&](const std::string& line) { bar.print(line); };
  }
  if (options.output == "-") {  // there is no file for them
    events.on_reject = [&](const Rejection& rejection) {
      bar.print(fmt::format("rejected '{}' (line {}): {}", rejection.id, rejection.line,
                            rejection.reason));
    };
  }
  const EmbedResult result = run_embed(options, events, stop.asked(), invocation.started);
  bar.clear();
  if (!options.stats.empty()) write_file(options.stats, stats_json(result));
  if (!options.quiet) print_summary(options, result);
  const bool failed = result.counts.failed > 0 || result.failed_before > 0 ||
                      (result.was_complete && result.total.rejected > 0);
  return failed ? 1 : 0;
}

namespace {

void print_summary(const Options& options, const LineJobResult& result, const char* unit) {
  const std::string where = options.output == "-" ? "standard output" : options.output;
  if (result.was_complete) {
    say("{} is complete already: {}, {} rejected\n", where, records(result.total.embedded),
        result.total.rejected);
    return;
  }
  const double rate =
      result.seconds > 0 ? static_cast<double>(result.new_tokens) / result.seconds : 0.0;
  std::string line = records(result.total.embedded);
  if (!where.empty()) line += " in " + where;
  line += fmt::format(", {} {} in {}, {:.1f}/s", result.new_tokens, unit,
                      clock_time(result.seconds), rate);
  if (result.resumed > 0) line += fmt::format("; {} were there before", result.resumed);
  say("{}\n", line);
  print_encoding_notes(result.notes);
  if (result.total.rejected > 0) {
    say("{} rejected, {}\n", records(result.total.rejected),
        options.output.empty() || options.output == "-"
            ? "as said above"
            : "see " + options.output + ".rejects.jsonl");
  }
}

using LineCommand = LineJobResult (*)(const Options&, const GenerateEvents&,
                                      const std::atomic<bool>&,
                                      std::chrono::steady_clock::time_point);

int run_line_command(LineCommand run, const Options& options, const Invocation& invocation,
                     const char* unit) {
  const StopSignals stop(options.input != "-");
  ProgressBar bar(options.quiet || options.stream, "tokens");
  GenerateEvents events;
  if (!options.quiet && !options.stream) {
    events.on_layout = [](const GenerationLayout& layout) {
      say("{}", generation_plan_table(layout.plan, layout.context));
    };
    events.on_progress = [&](const JobProgress& progress) { bar.show(progress); };
    events.on_note = [&](const std::string& line) { bar.print(line); };
  }
  if (options.output == "-" || options.output.empty()) {  // there is no file for them
    events.on_reject = [&](const Rejection& rejection) {
      bar.print(fmt::format("rejected '{}' (line {}): {}", rejection.id, rejection.line,
                            rejection.reason));
    };
  }
  if (options.stream) events.on_text = [](const std::string& text) { print(text); };
  const LineJobResult result = run(options, events, stop.asked(), invocation.started);
  bar.clear();
  if (!options.stats.empty()) write_file(options.stats, stats_json(result));
  if (!options.quiet) print_summary(options, result, unit);
  const bool failed = result.counts.failed > 0 || result.failed_before > 0 ||
                      (result.was_complete && result.total.rejected > 0);
  return failed ? 1 : 0;
}

// For a model that generates: both stacks, the caches, the ring.
int plan_generation(const Options& options) {
  const GenerationFolder folder = GenerationFolder::open(options.model);
  const GenerationConfig config = generation_config_of(options, folder);
  const GenerationLayout layout = make_generation_layout(
      folder, options, config, expected_prompts(options, folder, config, false), false);
  if (!options.svg.empty()) {
    fail(ErrorKind::kUsage, "--svg draws the plan of an encoder; that of generating is a table");
  }
  print(options.json ? generation_plan_json(layout.plan, layout.context)
                     : generation_plan_table(layout.plan, layout.context));
  return layout.plan.fits ? 0 : 1;
}

}  // namespace

int command_generate(const Options& options, const Invocation& invocation) {
  return run_line_command(run_generate, options, invocation, "new tokens");
}

int command_score(const Options& options, const Invocation& invocation) {
  return run_line_command(run_score, options, invocation, "scored tokens");
}

int command_plan(const Options& options, const Invocation& /*invocation*/) {
  check_plan_files(options);
  if (plans_generation(options)) return plan_generation(options);
  const EncoderFolder folder = EncoderFolder::open(options.model);
  const Layout layout =
      make_layout(folder, options, expected_records(options, *folder.model, true));
  const std::string title = std::filesystem::path(options.model).filename().string();
  if (!options.svg.empty()) {
    write_file(options.svg, plan_svg(layout.plan, {.title = title}, layout.context));
  }
  print(options.json ? plan_json(layout.plan, layout.context)
                     : plan_table(layout.plan, layout.context));
  return layout.plan.fits ? 0 : 1;
}

int command_tokenize(const Options& options, const Invocation& /*invocation*/) {
  const TokenizeResult result = run_tokenize(options);
  if (!options.quiet) print_encoding_notes(result.notes);
  if (result.failed > 0 && !options.quiet) {
    say("{} of {} failed\n", result.failed, records(result.records));
  }
  return result.failed > 0 ? 1 : 0;
}

int command_info(const Options& options, const Invocation& invocation) {
  print(checkpoint_text(invocation.operands.front(), options.json, options.verbose));
  return 0;
}

int command_devices(const Options& options, const Invocation& /*invocation*/) {
  std::vector<std::string> notes;
  print(devices_text(options.json, &notes));
  for (const std::string& note : notes) say("note: {}\n", note);
  return 0;
}

int command_merge(const Options& options, const Invocation& invocation) {
  if (options.output.empty()) fail(ErrorKind::kUsage, "--output is missing");
  const std::vector<std::filesystem::path> inputs(invocation.operands.begin(),
                                                  invocation.operands.end());
  const OutputCounts counts = merge_outputs(
      inputs, options.output, options.overwrite ? Existing::kOverwrite : Existing::kRefuse);
  if (!options.quiet) {
    say("{} in {}, {} rejected\n", records(counts.embedded), options.output, counts.rejected);
  }
  return counts.rejected > 0 ? 1 : 0;
}

}  // namespace quintet
