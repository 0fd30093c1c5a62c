#include "core/cache_folder.h"

#include <cstdlib>

namespace quintet {

namespace fs = std::filesystem;

fs::path cache_folder() {
  // The XDG specification asks for absolute paths and to ignore others.
  const char* xdg = std::getenv("XDG_CACHE_HOME");
  if (xdg != nullptr && fs::path(xdg).is_absolute()) return fs::path(xdg) / "quintet";
  const char* home = std::getenv("HOME");
  if (home != nullptr && fs::path(home).is_absolute()) return fs::path(home) / ".cache" / "quintet";
  return {};
}

}  // namespace quintet
