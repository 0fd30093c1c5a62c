// The activations that config.json files name.
#ifndef QUINTET_MODELS_ACTIVATIONS_H_
#define QUINTET_MODELS_ACTIVATIONS_H_

#include <optional>
#include <string>
#include <string_view>

#include "backends/device.h"

namespace quintet {

std::optional<Activation> activation_named(std::string_view name);

// "relu, gelu, ...", for messages.
std::string known_activations();

}  // namespace quintet

#endif  // QUINTET_MODELS_ACTIVATIONS_H_
