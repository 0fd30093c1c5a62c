// Joins the files of several runs over parts of one input. A .jsonl file holds embeddings or the
// lines of another job; which, its first line tells.
#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "core/error.h"
#include "core/json.h"
#include "output/file.h"
#include "output/finalise.h"
#include "output/formats.h"
#include "output/paths.h"

namespace quintet {
namespace {

using nlohmann::json;

// The shape that all inputs have; an input without records fits any.
FileShape common_shape(const Format& format, const std::vector<std::filesystem::path>& inputs) {
  FileShape common;
  common.empty = true;
  const std::filesystem::path* first = nullptr;
  for (const auto& input : inputs) {
    const FileShape shape = format.inspect(input);
    if (shape.empty) continue;
    if (first == nullptr) {
      common = shape;
      first = &input;
    }
    const SpoolShape& a = common.values;
    const SpoolShape& b = shape.values;
    if (a.dtype != b.dtype || a.pooled != b.pooled || a.d_model != b.d_model ||
        common.layout != shape.layout) {
      const auto text = [](const SpoolShape& s) {
        return fmt::format("{} {} of width {}", name_of(s.dtype), s.pooled ? "vectors" : "rows",
                           s.d_model);
      };
      fail(ErrorKind::kUsage, "{} and {} do not go together: {}{}, {}", first->string(),
           input.string(), text(a), common.layout == shape.layout ? "" : " in another layout",
           text(b));
    }
  }
  return common;
}

// Fingerprints of all inputs, which must come from one model.
std::string merged_fingerprint(const std::vector<std::filesystem::path>& inputs) {
  json runs = json::array();
  for (const auto& input : inputs) {
    const auto info = read_run_info(input);
    runs.push_back(info ? json::parse(info->fingerprint) : json());
    const json& first = runs[0];
    const json& last = runs.back();
    if (first.contains("model") && last.contains("model") && first["model"] != last["model"]) {
      fail(ErrorKind::kUsage, "{} and {} come from different models: {} and {}", inputs[0].string(),
           input.string(), first["model"].dump(), last["model"].dump());
    }
  }
  return json{{"merged", runs}}.dump();
}

class Merger {
 public:
  Merger(const std::vector<std::filesystem::path>& inputs, const OutputOptions& options,
         Spool& spool)
      : inputs_(inputs), options_(options), spool_(spool) {}

  void add(size_t input) {
    format_of(options_.format)
        .read(inputs_[input], [&](const Frame& frame, const std::vector<std::byte>& payload) {
          add_record(input, frame, payload);
        });
    add_rejects(with_suffix(inputs_[input], kRejectsSuffix));
  }

 private:
  struct Seen {
    std::string id;
    size_t input = 0;
  };

  void add_record(size_t input, Frame frame, const std::vector<std::byte>& payload) {
    frame.ordinal = spool_.next_ordinal();
    const auto [at, fresh] =
        seen_.try_emplace(output_key(options_, frame.id), Seen{frame.id, input});
    if (fresh) {
      spool_.append(frame, payload);
      return;
    }
    if (at->second.id == frame.id) {
      fail(ErrorKind::kUsage, "id '{}' stands in {} and in {}", frame.id,
           inputs_[at->second.input].string(), inputs_[input].string());
    }
    Frame rejected;
    rejected.kind = FrameKind::kRejected;
    rejected.ordinal = frame.ordinal;
    rejected.id = frame.id;
    rejected.text = fmt::format("its key '{}' is that of '{}' from {}", at->first, at->second.id,
                                inputs_[at->second.input].string());
    spool_.append(rejected, {});
  }

  void add_rejects(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::string line;
    for (uint64_t number = 1; std::getline(file, line); ++number) {
      const std::string where = fmt::format("{}:{}", path.string(), number);
      const json object = parse_json(line, where);
      Frame frame;
      frame.kind = FrameKind::kRejected;
      frame.ordinal = spool_.next_ordinal();
      try {
        frame.id = object.at("id").get<std::string>();
        frame.line = object.at("line").get<uint64_t>();
        frame.text = object.at("reason").get<std::string>();
      } catch (const json::exception& error) {
        fail(ErrorKind::kFile, "{}: expected id, line and reason: {}", where, error.what());
      }
      spool_.append(frame, {});
    }
  }

  const std::vector<std::filesystem::path>& inputs_;
  const OutputOptions& options_;
  Spool& spool_;
  std::unordered_map<std::string, Seen> seen_;
};

}  // namespace

OutputCounts merge_outputs(const std::vector<std::filesystem::path>& inputs,
                           const std::filesystem::path& output, Existing existing) {
  if (inputs.empty()) fail(ErrorKind::kUsage, "merge: no files to merge");
  if (existing == Existing::kResume) fail(ErrorKind::kUsage, "merge: starts anew, no --resume");
  const OutputFormat named = output_format_of(output);
  for (const auto& input : inputs) {
    if (input == "-" || output_format_of(input) != named) {
      fail(ErrorKind::kUsage, "{}: is not {} as {} is", input.string(), format_of(named).name,
           output.string());
    }
    if (!std::filesystem::is_regular_file(input)) {
      fail(ErrorKind::kUsage, "{}: no such file", input.string());
    }
    if (std::filesystem::exists(with_suffix(input, kSpoolSuffix))) {
      fail(ErrorKind::kUsage, "{}: its run has not ended; finish it with --resume first",
           input.string());
    }
    if (std::filesystem::exists(output) && std::filesystem::equivalent(input, output)) {
      fail(ErrorKind::kUsage, "{}: is both an input and the output", input.string());
    }
  }
  const bool lines =
      named == OutputFormat::kJsonl && std::ranges::any_of(inputs, begins_with_lines);
  const Format& format = lines ? format_of(OutputFormat::kLines) : format_of(named);
  const auto spool_path = with_suffix(output, kSpoolSuffix);
  if (existing == Existing::kRefuse) {
    for (const auto& path : {output, spool_path}) {
      if (std::filesystem::exists(path)) {
        fail(ErrorKind::kUsage, "{}: is there already; --overwrite replaces it", path.string());
      }
    }
  }
  for (const NamedPath& file : output_files({.path = output, .format = format.format})) {
    check_writable(file.path, file.option);
  }
  const FileShape shape = common_shape(format, inputs);
  OutputOptions options{.path = output, .format = format.format, .layout = shape.layout};
  options.dtype = shape.values.dtype;
  options.pooled = shape.values.pooled;
  options.d_model = shape.values.d_model;
  options.fingerprint = merged_fingerprint(inputs);
  Spool spool(spool_path);
  try {
    spool.start(shape.values, options.fingerprint);
    Merger merger(inputs, options, spool);
    for (size_t i = 0; i < inputs.size(); ++i) merger.add(i);
    finalise(spool, options);
  } catch (...) {  // nothing is lost with it: the inputs are still there
    std::error_code ignored;
    std::filesystem::remove(spool_path, ignored);
    throw;
  }
  return spool.counts();
}

}  // namespace quintet
