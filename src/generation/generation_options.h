// Names and values of generation options as JSON has them, into a GenerationConfig.
#ifndef QUINTET_GENERATION_GENERATION_OPTIONS_H_
#define QUINTET_GENERATION_GENERATION_OPTIONS_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "generation/generation_config.h"

namespace quintet {

enum class OptionSource {
  kFolder,  // a model folder's file: other names are the model's business
  kCaller,  // every name must be an option that quintet does
};

// Sets the option `name`, where it is one, to `value`; null leaves it as it is. Throws Error, of
// kind kFile or kUsage by the source, for values that are wrong or that quintet does not do.
void set_generation_option(GenerationConfig& config, std::string_view name,
                           const nlohmann::json& value, OptionSource source,
                           const std::string& where);

}  // namespace quintet

#endif  // QUINTET_GENERATION_GENERATION_OPTIONS_H_
