// The names of the files that a run writes, checked before anything is computed: that none of them
// is another one or an input, and that each can be written.
#ifndef QUINTET_OUTPUT_PATHS_H_
#define QUINTET_OUTPUT_PATHS_H_

#include <filesystem>
#include <string>
#include <vector>

#include "output/writer.h"

namespace quintet {

struct NamedPath {
  std::string option;  // that names it: "--stats"
  std::filesystem::path path;
  bool is_input = false;  // a file that is read, or a folder of such files
};

// Whether both names lead to one file. Of a file that is not there yet its folder and name count.
bool same_file(const std::filesystem::path& a, const std::filesystem::path& b);

// OUTPUT and all files beside it that a run with these options may write, under --output. None for
// stdout.
std::vector<NamedPath> output_files(const OutputOptions& options);

// Throws Error(kUsage) that names both options where a file to be written is another one of the
// list, or stands right in a folder of inputs or is one of that folder's files under another name.
// Empty names, "-" and devices (/dev/null) meet nobody.
void check_no_clash(const std::vector<NamedPath>& files);

// Throws Error(kUsage) that begins with `option` where no file can be written there: the folder is
// missing or refuses, a folder has the name, the name is too long, or a file is there that refuses.
void check_writable(const std::filesystem::path& path, const std::string& option);

}  // namespace quintet

#endif  // QUINTET_OUTPUT_PATHS_H_
