// Where this user's caches lie on disk.
#ifndef QUINTET_CORE_CACHE_FOLDER_H_
#define QUINTET_CORE_CACHE_FOLDER_H_

#include <filesystem>

namespace quintet {

// $XDG_CACHE_HOME/quintet or ~/.cache/quintet; empty where neither is known: nothing is cached.
std::filesystem::path cache_folder();

}  // namespace quintet

#endif  // QUINTET_CORE_CACHE_FOLDER_H_
