// From a complete spool to the output file and what stands beside it:
//
//   OUTPUT                the embeddings
//   OUTPUT.rejects.jsonl  one line per rejected record; absent where there is none
//   OUTPUT.run.json       fingerprint and counts of the run and marks of the files it wrote, by
//   which
//                         --resume knows a whole output
#ifndef QUINTET_OUTPUT_FINALISE_H_
#define QUINTET_OUTPUT_FINALISE_H_

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "output/spool.h"
#include "output/writer.h"

namespace quintet {

inline constexpr std::string_view kSpoolSuffix = ".spool";
inline constexpr std::string_view kRejectsSuffix = ".rejects.jsonl";
inline constexpr std::string_view kRunSuffix = ".run.json";
inline constexpr std::string_view kPartialSuffix = ".partial";  // of a file being written

// Each file is written under a temporary name, put onto the disk and renamed, OUTPUT last; then the
// spool is removed. Interrupted anywhere, it is simply done again.
void finalise(const Spool& spool, const OutputOptions& options);

// By what a file that a run wrote is known again.
struct FileMark {
  std::string suffix;  // behind OUTPUT's name
  uint64_t size = 0;
  std::string xxh3;  // of 64 pieces of 64 KiB, the first and the last bytes among them

  bool operator==(const FileMark&) const = default;
};
FileMark mark_of(const std::filesystem::path& path, std::string_view suffix);

// What OUTPUT.run.json says.
struct RunInfo {
  std::string fingerprint;  // format and layout included
  OutputCounts counts;
  std::vector<FileMark> files;
};
std::optional<RunInfo> read_run_info(const std::filesystem::path& output);
// Throws Error(kUsage) that says what has changed where OUTPUT or a file beside it is no longer
// what the run has written.
void require_unchanged(const std::filesystem::path& output, const RunInfo& info);
// What a run's file would be marked with.
std::string file_fingerprint(const std::string& full_fingerprint, const OutputOptions& options);

}  // namespace quintet

#endif  // QUINTET_OUTPUT_FINALISE_H_
