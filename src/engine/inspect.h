// What the programs show without computing: devices of this machine, facts of a checkpoint.
#ifndef QUINTET_ENGINE_INSPECT_H_
#define QUINTET_ENGINE_INSPECT_H_

#include <string>

#include "engine/options.h"

namespace quintet {

// `notes` gets a line for each backend module that cannot be used.
std::string devices_text(bool json, std::vector<std::string>* notes);
// Config, weights and tokenizer of --model, from headers alone.
std::string checkpoint_text(const std::string& folder, bool json, bool verbose);

}  // namespace quintet

#endif  // QUINTET_ENGINE_INSPECT_H_
