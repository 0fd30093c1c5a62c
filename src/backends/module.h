// Backend modules: shared libraries that drive one kind of device each (quintet/backend.h).
#ifndef QUINTET_BACKENDS_MODULE_H_
#define QUINTET_BACKENDS_MODULE_H_

#include <filesystem>
#include <vector>

#include "backends/registry.h"

namespace quintet {

// Loads a module, which stays loaded. Throws Error(kDevice) that names the file and what is wrong
// with it: cannot be opened, no entry point, another version, names that are not names.
Backend load_module(const std::filesystem::path& file);

// Where modules are looked for, in this order: the folders of QUINTET_BACKEND_PATH (separated by
// ':'), the program's own, and ../lib/quintet seen from there.
std::vector<std::filesystem::path> module_folders();

// The files libquintet_*.so in these folders; of several with one name the first.
std::vector<std::filesystem::path> module_files();

}  // namespace quintet

#endif  // QUINTET_BACKENDS_MODULE_H_
