#include "models/activations.h"

#include <array>

namespace quintet {
namespace {

struct NamedActivation {
  std::string_view name;
  Activation activation;
};

constexpr std::array<NamedActivation, 13> kActivations = {{
    {"relu", Activation::kRelu},
    {"gelu", Activation::kGeluErf},
    {"gelu_new", Activation::kGeluTanh},
    {"silu", Activation::kSilu},
    {"swish", Activation::kSilu},
    {"tanh", Activation::kTanh},
    {"quick_gelu", Activation::kGeluQuick},
    {"linear", Activation::kNone},
    // Other spellings of the two forms of gelu, equal in exact arithmetic.
    {"gelu_python", Activation::kGeluErf},
    {"gelu_fast", Activation::kGeluTanh},
    {"gelu_accurate", Activation::kGeluTanh},
    {"gelu_pytorch_tanh", Activation::kGeluTanh},
    {"gelu_python_tanh", Activation::kGeluTanh},
}};

}  // namespace

std::optional<Activation> activation_named(std::string_view name) {
  for (const auto& known : kActivations) {
    if (known.name == name) return known.activation;
  }
  return std::nullopt;
}

std::string known_activations() {
  std::string names;
  for (const auto& known : kActivations) {
    if (!names.empty()) names += ", ";
    names += known.name;
  }
  return names;
}

}  // namespace quintet
