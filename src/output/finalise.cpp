#include "output/finalise.h"

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/json.h"
#include "output/file.h"
#include "output/formats.h"

namespace quintet {
namespace {

using nlohmann::json;

constexpr std::string_view kPartialSuffix = ".partial";

std::string dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace) + '\n';
}

// A lower bound of what the file will take: only a sure failure is refused in advance.
void check_room(const Spool& spool, const OutputOptions& options) {
  const uint64_t needed = spool.size() * (options.format == OutputFormat::kJsonl ? 2 : 1);
  const auto free = free_bytes_at(options.path);
  if (!free || needed <= *free) return;
  fail(
      ErrorKind::kIo,
      "{}: needs {} to build it from {}, {} is free; nothing is lost: make room and run again with "
      "--resume",
      options.path.string(), readable_bytes(needed), spool.path().string(), readable_bytes(*free));
}

void write_rejects(const Spool& spool, const std::filesystem::path& output) {
  const auto path = with_suffix(output, kRejectsSuffix);
  if (spool.counts().rejected == 0) {
    remove_if_there(path);
    return;
  }
  const auto partial = with_suffix(path, kPartialSuffix);
  BufferedFile file(partial);
  spool.each([&](const Frame& frame) {
    if (frame.kind != FrameKind::kRejected) return;
    nlohmann::ordered_json line = {{"id", frame.id}, {"line", frame.line}, {"reason", frame.text}};
    file.write(line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n');
  });
  file.close();
  replace_file(partial, path);
}

void write_run_info(const Spool& spool, const OutputOptions& options) {
  const auto path = with_suffix(options.path, kRunSuffix);
  const auto partial = with_suffix(path, kPartialSuffix);
  BufferedFile file(partial);
  file.write(dump({{"run", json::parse(file_fingerprint(spool.fingerprint(), options))},
                   {"embedded", spool.counts().embedded},
                   {"rejected", spool.counts().rejected}}));
  file.close();
  replace_file(partial, path);
}

}  // namespace

std::string file_fingerprint(const std::string& full_fingerprint, const OutputOptions& options) {
  auto all = parse_json(full_fingerprint, "fingerprint");
  all["format"] = format_of(options.format).name;
  if (options.format == OutputFormat::kHdf5) all["layout"] = static_cast<int>(options.layout);
  return all.dump();
}

std::optional<RunInfo> read_run_info(const std::filesystem::path& output) {
  const auto path = with_suffix(output, kRunSuffix);
  if (!std::filesystem::exists(path)) return std::nullopt;
  const json info = parse_json_file(path);
  if (!info.is_object() || !info.contains("run") || !info["run"].is_object() ||
      !info.contains("embedded") || !info["embedded"].is_number_unsigned() ||
      !info.contains("rejected") || !info["rejected"].is_number_unsigned()) {
    fail(ErrorKind::kFile, "{}: expected an object with run, embedded and rejected", path.string());
  }
  return RunInfo{info["run"].dump(),
                 {info["embedded"].get<uint64_t>(), info["rejected"].get<uint64_t>()}};
}

void finalise(const Spool& spool, const OutputOptions& options) {
  const Format& format = format_of(options.format);
  const auto partial = with_suffix(options.path, kPartialSuffix);
  const auto remove_partial = [&] {
    remove_if_there(partial);
    for (const auto suffix : format.side_files) remove_if_there(with_suffix(partial, suffix));
  };
  check_room(spool, options);
  try {
    format.write(spool, options, partial);
    write_rejects(spool, options.path);
    write_run_info(spool, options);
    for (const auto suffix : format.side_files) {
      replace_file(with_suffix(partial, suffix), with_suffix(options.path, suffix));
    }
    replace_file(partial, options.path);
  } catch (const Error& error) {
    remove_partial();
    if (error.kind() != ErrorKind::kIo) throw;
    fail(ErrorKind::kIo, "{}; nothing is lost: {} holds all records, run again with --resume",
         error.what(), spool.path().string());
  }
  remove_if_there(spool.path());
}

}  // namespace quintet
