#include "engine/named_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"

namespace quintet {

void check_model_folder(const std::string& option, const std::filesystem::path& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
    fail(ErrorKind::kUsage,
         "{} {}: no such folder; a checkpoint as Hugging Face ships it is needed on this machine, "
         "nothing is downloaded",
         option, path.string());
  }
  if (::access(path.c_str(), R_OK | X_OK) != 0) {
    fail(ErrorKind::kUsage, "{} {}: cannot be read: {}", option, path.string(),
         std::strerror(errno));
  }
}

void check_input_file(const std::string& option, const std::filesystem::path& path) {
  if (path.empty() || path == "-") return;
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    fail(ErrorKind::kUsage, "{} {}: cannot be read: {}", option, path.string(),
         std::strerror(errno));
  }
  if (S_ISDIR(info.st_mode)) {
    fail(ErrorKind::kUsage, "{} {}: is a folder, expected a file", option, path.string());
  }
  if (::access(path.c_str(), R_OK) != 0) {
    fail(ErrorKind::kUsage, "{} {}: cannot be read: {}", option, path.string(),
         std::strerror(errno));
  }
}

void check_named_files(const Options& options) {
  if (!options.model.empty()) check_model_folder("--model", options.model);
  check_input_file("--input", options.input);
  check_input_file("--generation-config", options.generation_config);
  std::error_code ignored;  // a map may stand in the option itself
  if (std::filesystem::exists(options.device_map, ignored)) {
    check_input_file("--device-map", options.device_map);
  }
}

}  // namespace quintet
