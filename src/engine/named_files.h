// The files and folders that a command line names to be read: whether they are there, told before
// any work. Error(kUsage) is for a name that leads nowhere, to the wrong kind of thing or to what
// may not be read; what is wrong inside of it, or fails while it is read, is Error(kFile) or
// Error(kIo).
#ifndef QUINTET_ENGINE_NAMED_FILES_H_
#define QUINTET_ENGINE_NAMED_FILES_H_

#include <filesystem>
#include <string>

#include "engine/options.h"

namespace quintet {

// A checkpoint's folder. `option` begins the message.
void check_model_folder(const std::string& option, const std::filesystem::path& path);
// A file, a pipe or a device; "" and "-" are fine.
void check_input_file(const std::string& option, const std::filesystem::path& path);
// --model, --input, --device-map and --generation-config, as far as they are given.
void check_named_files(const Options& options);

}  // namespace quintet

#endif  // QUINTET_ENGINE_NAMED_FILES_H_
