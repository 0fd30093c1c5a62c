// Small random checkpoints of each family, the same numbers on every machine, as Hugging Face lays
// them out: config.json, generation_config.json and model.safetensors in float32.
#ifndef QUINTET_CONFORMANCE_CHECKPOINT_MAKER_H_
#define QUINTET_CONFORMANCE_CHECKPOINT_MAKER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string_view>

namespace quintet::conformance {

enum class Family { kGpt2, kT5, kMt5, kUmt5 };

inline constexpr std::array<Family, 4> kFamilies = {Family::kGpt2, Family::kT5, Family::kMt5,
                                                    Family::kUmt5};

std::string_view family_name(Family family);  // as the classes' names begin: "MT5"

struct MadeCheckpoint {
  std::filesystem::path folder = {};
  int64_t n_encoder_layers = 0;  // 0: a decoder alone
  int64_t n_decoder_layers = 0;
  int64_t vocab_size = 0;
  size_t encoder_bytes = 0;  // of the weights of all blocks of a stack, in float32
  size_t decoder_bytes = 0;
};

// Writes into a folder below `parent`. Throws Error(kIo).
MadeCheckpoint make_checkpoint(Family family, const std::filesystem::path& parent);

}  // namespace quintet::conformance

#endif  // QUINTET_CONFORMANCE_CHECKPOINT_MAKER_H_
