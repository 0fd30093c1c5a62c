#include "weights/registry.h"

#include <array>

#include "weights/safetensors.h"
#include "weights/torch_legacy.h"
#include "weights/torch_zip.h"

namespace quintet {
namespace {

bool any(std::span<const std::byte> /*bytes*/) { return true; }

constexpr std::array<WeightFormat, 3> kFormats{{
    {"safetensors", "model.safetensors", "model.safetensors.index.json", any, parse_safetensors},
    {"torch zip", "pytorch_model.bin", "pytorch_model.bin.index.json", is_torch_zip,
     parse_torch_zip},
    {"torch legacy", "pytorch_model.bin", "pytorch_model.bin.index.json", is_torch_legacy,
     parse_torch_legacy},
}};

}  // namespace

std::span<const WeightFormat> weight_formats() { return kFormats; }

}  // namespace quintet
