// A folder for temporary files, gone with everything in it when the object goes.
#ifndef QUINTET_CONFORMANCE_SCRATCH_FOLDER_H_
#define QUINTET_CONFORMANCE_SCRATCH_FOLDER_H_

#include <stdlib.h>  // mkdtemp

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>

#include "core/error.h"

namespace quintet::conformance {

class ScratchFolder {
 public:
  // In $TMPDIR, else /tmp. Throws Error(kIo).
  ScratchFolder() {
    std::string name =
        (std::filesystem::temp_directory_path() / "quintet-conformance-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
      fail(ErrorKind::kIo, "{}: {}; set TMPDIR to a folder that can be written", name,
           std::strerror(errno));
    }
    path_ = name;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace quintet::conformance

#endif  // QUINTET_CONFORMANCE_SCRATCH_FOLDER_H_
