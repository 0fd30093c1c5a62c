// Which parser reads the config.json of which model_type.
#include <array>
#include <string_view>

#include "core/error.h"
#include "core/json.h"
#include "models/config_reader.h"
#include "models/encoder.h"
#include "models/t5.h"

namespace quintet {
namespace {

struct Entry {
  std::string_view model_type;
  std::unique_ptr<EncoderModel> (*make)(const nlohmann::json& config, const std::string& where);
};

// A new model joins with one line.
constexpr std::array<Entry, 3> kEncoders = {{
    {"t5", make_t5_encoder},
    {"mt5", make_t5_encoder},
    {"umt5", make_t5_encoder},
}};

}  // namespace

std::unique_ptr<EncoderModel> make_encoder_model(const nlohmann::json& config,
                                                 const std::string& where) {
  const ConfigReader reader(config, where);
  const std::string type = reader.string("model_type").value_or("");
  std::string known;
  for (const Entry& entry : kEncoders) {
    if (entry.model_type == type) return entry.make(config, where);
    known += fmt::format("{}{}", known.empty() ? "" : ", ", entry.model_type);
  }
  reader.reject("model_type", "one of " + known);
}

std::unique_ptr<EncoderModel> load_encoder_model(const std::filesystem::path& folder) {
  const auto path = folder / "config.json";
  constexpr JsonLimits kLimits{.max_bytes = size_t{16} << 20};
  return make_encoder_model(parse_json_file(path, kLimits), path.string());
}

}  // namespace quintet
