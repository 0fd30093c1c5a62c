// The T5 family: T5, mT5, uMT5, ByT5, ProtT5, ProstT5, Ankh. Encoders from encoder-only and from
// full checkpoints, decoders from full ones.
#ifndef QUINTET_MODELS_T5_H_
#define QUINTET_MODELS_T5_H_

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "models/decoder.h"
#include "models/encoder.h"

namespace quintet {

// See parse_t5_config.
std::unique_ptr<EncoderModel> make_t5_encoder(const nlohmann::json& config,
                                              const std::string& where);

// Throws Error(kFile) where the config is an encoder's alone.
std::unique_ptr<DecoderModel> make_t5_decoder(const nlohmann::json& config,
                                              const std::string& where);

}  // namespace quintet

#endif  // QUINTET_MODELS_T5_H_
