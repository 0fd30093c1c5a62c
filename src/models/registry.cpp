// Which parser reads the config.json of which model_type.
#include <array>
#include <string_view>

#include "core/error.h"
#include "core/json.h"
#include "models/config_reader.h"
#include "models/decoder.h"
#include "models/encoder.h"
#include "models/gpt2.h"
#include "models/t5.h"

namespace quintet {
namespace {

template <typename Model>
struct Entry {
  std::string_view model_type;
  std::unique_ptr<Model> (*make)(const nlohmann::json& config, const std::string& where);
};

// A new model joins with one line.
constexpr std::array<Entry<EncoderModel>, 3> kEncoders = {{
    {"t5", make_t5_encoder},
    {"mt5", make_t5_encoder},
    {"umt5", make_t5_encoder},
}};
constexpr std::array<Entry<DecoderModel>, 4> kDecoders = {{
    {"t5", make_t5_decoder},
    {"mt5", make_t5_decoder},
    {"umt5", make_t5_decoder},
    {"gpt2", make_gpt2_decoder},
}};

template <typename Model, size_t kCount>
std::unique_ptr<Model> make(const std::array<Entry<Model>, kCount>& entries,
                            const nlohmann::json& config, const std::string& where) {
  const ConfigReader reader(config, where);
  const std::string type = reader.string("model_type").value_or("");
  std::string known;
  for (const Entry<Model>& entry : entries) {
    if (entry.model_type == type) return entry.make(config, where);
    known += fmt::format("{}{}", known.empty() ? "" : ", ", entry.model_type);
  }
  reader.reject("model_type", "one of " + known);
}

nlohmann::json read_config(const std::filesystem::path& path) {
  constexpr JsonLimits kLimits{.max_bytes = size_t{16} << 20};
  return parse_json_file(path, kLimits);
}

}  // namespace

std::unique_ptr<EncoderModel> make_encoder_model(const nlohmann::json& config,
                                                 const std::string& where) {
  return make(kEncoders, config, where);
}

std::unique_ptr<DecoderModel> make_decoder_model(const nlohmann::json& config,
                                                 const std::string& where) {
  return make(kDecoders, config, where);
}

std::unique_ptr<EncoderModel> load_encoder_model(const std::filesystem::path& folder) {
  const auto path = folder / "config.json";
  return make_encoder_model(read_config(path), path.string());
}

std::unique_ptr<DecoderModel> load_decoder_model(const std::filesystem::path& folder) {
  const auto path = folder / "config.json";
  return make_decoder_model(read_config(path), path.string());
}

}  // namespace quintet
