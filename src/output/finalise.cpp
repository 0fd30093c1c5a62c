#include "output/finalise.h"

#include <xxhash.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/human.h"
#include "core/json.h"
#include "output/file.h"
#include "output/formats.h"

namespace quintet {
namespace {

using nlohmann::json;

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
      options.path.string(), human_bytes(needed), spool.path().string(), human_bytes(*free));
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

// Of OUTPUT and its side files as they stand under their temporary names.
json marks_of_partial(const Spool& spool, const OutputOptions& options) {
  std::vector<std::string_view> suffixes = {""};
  for (const auto suffix : format_of(options.format).side_files) suffixes.push_back(suffix);
  const auto partial = with_suffix(options.path, kPartialSuffix);
  json marks = json::array();
  const auto add = [&](const FileMark& mark) {
    marks.push_back({{"suffix", mark.suffix}, {"size", mark.size}, {"xxh3", mark.xxh3}});
  };
  for (const auto suffix : suffixes) add(mark_of(with_suffix(partial, suffix), suffix));
  if (spool.counts().rejected > 0) {
    add(mark_of(with_suffix(options.path, kRejectsSuffix), kRejectsSuffix));
  }
  return marks;
}

void write_run_info(const Spool& spool, const OutputOptions& options) {
  const auto path = with_suffix(options.path, kRunSuffix);
  const auto partial = with_suffix(path, kPartialSuffix);
  BufferedFile file(partial);
  file.write(dump({{"run", json::parse(file_fingerprint(spool.fingerprint(), options))},
                   {"embedded", spool.counts().embedded},
                   {"rejected", spool.counts().rejected},
                   {"files", marks_of_partial(spool, options)}}));
  file.close();
  replace_file(partial, path);
}

}  // namespace

std::string file_fingerprint(const std::string& full_fingerprint, const OutputOptions& options) {
  auto all = parse_json(full_fingerprint, "fingerprint");
  all["format"] = format_of(options.format).name;
  if (options.format == OutputFormat::kHdf5) all["layout"] = layout_name(options.layout);
  return all.dump();
}

FileMark mark_of(const std::filesystem::path& path, std::string_view suffix) {
  constexpr uint64_t kPieces = 64;
  constexpr uint64_t kPieceBytes = uint64_t{64} << 10;
  const File file(path, File::Mode::kRead);
  const uint64_t size = file.size();
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(),
                                                                       XXH3_freeState);
  XXH3_64bits_reset(state.get());
  std::vector<std::byte> piece(kPieceBytes);
  const uint64_t last = size - std::min(size, kPieceBytes);  // where the last piece begins
  uint64_t done = 0;
  for (uint64_t i = 0; i < kPieces && done < size; ++i) {
    // A small file's pieces would overlap: they go on where the one before ended.
    const uint64_t at = last < kPieces * kPieceBytes ? done : last / (kPieces - 1) * i;
    const uint64_t begin = i + 1 == kPieces ? std::max(done, last) : at;
    const size_t n = file.read_some_at(begin, piece.data(), piece.size());
    XXH3_64bits_update(state.get(), piece.data(), n);
    done = begin + n;
  }
  return {.suffix = std::string(suffix),
          .size = size,
          .xxh3 = fmt::format("{:016x}", XXH3_64bits_digest(state.get()))};
}

namespace {

std::vector<FileMark> read_marks(const json& files) {
  std::vector<FileMark> marks;
  for (const json& file : files) {
    marks.push_back({.suffix = file.at("suffix").get<std::string>(),
                     .size = file.at("size").get<uint64_t>(),
                     .xxh3 = file.at("xxh3").get<std::string>()});
  }
  return marks;
}

}  // namespace

std::optional<RunInfo> read_run_info(const std::filesystem::path& output) {
  const auto path = with_suffix(output, kRunSuffix);
  if (!std::filesystem::exists(path)) return std::nullopt;
  const json info = parse_json_file(path);
  const auto refuse = [&] {
    fail(ErrorKind::kFile, "{}: expected an object with run, embedded, rejected and files",
         path.string());
  };
  if (!info.is_object() || !info.contains("run") || !info["run"].is_object() ||
      !info.contains("files") || !info["files"].is_array()) {
    refuse();
  }
  try {
    return RunInfo{.fingerprint = info["run"].dump(),
                   .counts = {.embedded = info.at("embedded").get<uint64_t>(),
                              .rejected = info.at("rejected").get<uint64_t>()},
                   .files = read_marks(info["files"])};
  } catch (const json::exception&) {
    refuse();
  }
  return std::nullopt;
}

void require_unchanged(const std::filesystem::path& output, const RunInfo& info) {
  for (const FileMark& before : info.files) {
    const auto path = with_suffix(output, before.suffix);
    const auto refuse = [&](const std::string& change) {
      fail(ErrorKind::kUsage,
           "{}: is not what the run has written: {}; put that file back, or compute it anew with "
           "--overwrite",
           path.string(), change);
    };
    if (!std::filesystem::is_regular_file(path)) refuse("the file is gone");
    const FileMark now = mark_of(path, before.suffix);
    if (now.size != before.size) {
      refuse(fmt::format("it has {} bytes now, {} then", now.size, before.size));
    }
    if (now != before) refuse("its bytes have changed");
  }
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
