#include "output/paths.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/error.h"
#include "output/file.h"
#include "output/finalise.h"
#include "output/formats.h"

namespace quintet {
namespace {

namespace fs = std::filesystem;

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

bool is_device(const fs::path& path) {
  std::error_code ignored;
  return fs::is_character_file(path, ignored);
}

bool counts(const NamedPath& file) {
  return !file.path.empty() && file.path != "-" && !is_device(file.path);
}

[[noreturn]] void fail_to_write(const std::string& option, const fs::path& path, int error,
                                const std::string& hint = "") {
  fail(ErrorKind::kUsage, "{} {}: cannot be written: {}{}", option, path.string(),
       std::strerror(error), hint);
}

// Both named by one option: files that stand beside OUTPUT.
std::string both_options(const NamedPath& a, const NamedPath& b) {
  return a.option == b.option ? a.option : a.option + " and " + b.option;
}

void check_against_folder(const NamedPath& written, const NamedPath& folder) {
  if (same_file(folder_of(written.path), folder.path)) {
    fail(ErrorKind::kUsage, "{} {}: lies in the folder that {} reads; name a file elsewhere",
         written.option, written.path.string(), folder.option);
  }
  if (!fs::exists(written.path)) return;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder.path, ignored)) {
    if (!same_file(written.path, entry.path())) continue;
    fail(ErrorKind::kUsage, "{} {}: is {}, which {} reads; name another file", written.option,
         written.path.string(), entry.path().string(), folder.option);
  }
}

}  // namespace

bool same_file(const fs::path& a, const fs::path& b) {
  struct stat of_a {};
  struct stat of_b {};
  const bool has_a = ::stat(a.c_str(), &of_a) == 0;
  const bool has_b = ::stat(b.c_str(), &of_b) == 0;
  if (has_a && has_b) return of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
  if (has_a != has_b || a.filename() != b.filename()) return false;
  const fs::path folder_a = folder_of(a);
  const fs::path folder_b = folder_of(b);
  if (::stat(folder_a.c_str(), &of_a) == 0 && ::stat(folder_b.c_str(), &of_b) == 0) {
    return of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
  }
  std::error_code failed;
  const fs::path whole_a = fs::weakly_canonical(a, failed);
  if (failed) return a == b;
  const fs::path whole_b = fs::weakly_canonical(b, failed);
  return failed ? a == b : whole_a == whole_b;
}

std::vector<NamedPath> output_files(const OutputOptions& options) {
  if (options.path == "-" || options.path.empty()) return {};
  std::vector<std::string> suffixes = {"", std::string(kPartialSuffix), std::string(kSpoolSuffix)};
  for (const auto suffix : {kRejectsSuffix, kRunSuffix}) {
    suffixes.push_back(fmt::format("{}", suffix));
    suffixes.push_back(fmt::format("{}{}", suffix, kPartialSuffix));
  }
  for (const auto suffix : format_of(options.format).side_files) {
    suffixes.push_back(fmt::format("{}", suffix));
    suffixes.push_back(fmt::format("{}{}", kPartialSuffix, suffix));
  }
  std::vector<NamedPath> files;
  files.reserve(suffixes.size());
  for (const auto& suffix : suffixes) {
    files.push_back({.option = "--output", .path = with_suffix(options.path, suffix)});
  }
  return files;
}

void check_no_clash(const std::vector<NamedPath>& files) {
  for (size_t i = 0; i < files.size(); ++i) {
    const NamedPath& written = files[i];
    if (written.is_input || !counts(written)) continue;
    for (size_t j = 0; j < files.size(); ++j) {
      const NamedPath& other = files[j];
      if (i == j || !counts(other)) continue;
      if (other.is_input && fs::is_directory(other.path)) {
        check_against_folder(written, other);
      } else if (same_file(written.path, other.path)) {
        fail(ErrorKind::kUsage, "{}: {} is {}; give each its own file",
             both_options(written, other), written.path.string(),
             other.is_input ? "also the file to be read" : "to be written twice");
      }
    }
  }
}

void check_writable(const fs::path& path, const std::string& option) {
  struct stat info {};
  const fs::path folder = folder_of(path);
  if (::stat(folder.c_str(), &info) != 0) {
    const int error = errno;
    fail_to_write(
        option, path, error,
        error == ENOENT ? fmt::format("; make the folder {} first", folder.string()) : "");
  }
  if (!S_ISDIR(info.st_mode)) fail_to_write(option, path, ENOTDIR);
  if (::stat(path.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode)) {
      fail_to_write(option, path, EISDIR, "; choose another name or move the folder away");
    }
    if (::access(path.c_str(), W_OK) != 0) fail_to_write(option, path, errno);
    if (!S_ISREG(info.st_mode)) return;
  } else if (errno != ENOENT) {  // above all a name that is too long
    const int error = errno;
    fail_to_write(option, path, error,
                  error == ENAMETOOLONG
                      ? fmt::format(" ({} bytes in the last part)", path.filename().string().size())
                      : "");
  }
  if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    fail_to_write(option, path, errno, fmt::format(" (folder {})", folder.string()));
  }
}

}  // namespace quintet
