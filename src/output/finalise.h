// From a complete spool to the output file and what stands beside it:
//
//   OUTPUT                the embeddings
//   OUTPUT.rejects.jsonl  one line per rejected record; absent where there is none
//   OUTPUT.run.json       fingerprint and counts of the run, by which --resume knows a whole file
#ifndef QUINTET_OUTPUT_FINALISE_H_
#define QUINTET_OUTPUT_FINALISE_H_

#include <filesystem>
#include <optional>
#include <string>

#include "output/spool.h"
#include "output/writer.h"

namespace quintet {

inline constexpr std::string_view kSpoolSuffix = ".spool";
inline constexpr std::string_view kRejectsSuffix = ".rejects.jsonl";
inline constexpr std::string_view kRunSuffix = ".run.json";

// Each file is written under a temporary name, put onto the disk and renamed, OUTPUT last; then the
// spool is removed. Interrupted anywhere, it is simply done again.
void finalise(const Spool& spool, const OutputOptions& options);

// What OUTPUT.run.json says.
struct RunInfo {
  std::string fingerprint;  // format and layout included
  OutputCounts counts;
};
std::optional<RunInfo> read_run_info(const std::filesystem::path& output);
// What a run's file would be marked with.
std::string file_fingerprint(const std::string& full_fingerprint, const OutputOptions& options);

}  // namespace quintet

#endif  // QUINTET_OUTPUT_FINALISE_H_
