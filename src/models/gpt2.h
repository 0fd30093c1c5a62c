// GPT-2: GPT2LMHeadModel and GPT2Model, under the names that either class saves.
#ifndef QUINTET_MODELS_GPT2_H_
#define QUINTET_MODELS_GPT2_H_

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "models/decoder.h"

namespace quintet {

// See parse_gpt2_config.
std::unique_ptr<DecoderModel> make_gpt2_decoder(const nlohmann::json& config,
                                                const std::string& where);

}  // namespace quintet

#endif  // QUINTET_MODELS_GPT2_H_
