#include "models/config_reader.h"

#include "core/error.h"

namespace quintet {
namespace {

// The value as it stands in the file; a long one is cut.
std::string shown(const nlohmann::json& value) {
  constexpr size_t kMost = 60;
  if (value.is_structured()) return value.is_array() ? "a list" : "an object";
  std::string text = value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  if (text.size() > kMost) text = text.substr(0, kMost) + "...";
  return text;
}

}  // namespace

ConfigReader::ConfigReader(const nlohmann::json& config, const std::string& where)
    : config_(config), where_(where) {
  if (!config.is_object()) {
    fail(ErrorKind::kFile, "{}: holds {}, expected a JSON object", where, shown(config));
  }
}

const nlohmann::json* ConfigReader::find(std::string_view key) const {
  const auto found = config_.find(key);
  return found == config_.end() || found->is_null() ? nullptr : &*found;
}

bool ConfigReader::is_null(std::string_view key) const {
  const auto found = config_.find(key);
  return found != config_.end() && found->is_null();
}

void ConfigReader::reject(std::string_view key, std::string_view expected) const {
  const auto* value = find(key);
  fail(ErrorKind::kFile, "{}: '{}' is {}, expected {}", where_, key,
       value == nullptr ? "missing" : shown(*value), expected);
}

std::optional<int64_t> ConfigReader::integer(std::string_view key, Range range) const {
  const auto* value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto most = static_cast<uint64_t>(range.most);
  const bool fits = value->is_number_unsigned()
                        ? value->get<uint64_t>() <= most && value->get<int64_t>() >= range.least
                        : value->is_number_integer() && value->get<int64_t>() >= range.least &&
                              value->get<int64_t>() <= range.most;
  if (!fits) reject(key, fmt::format("a whole number from {} to {}", range.least, range.most));
  return value->get<int64_t>();
}

std::optional<double> ConfigReader::number(std::string_view key, double least, double most) const {
  const auto* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number() || !(value->get<double>() >= least) || !(value->get<double>() <= most)) {
    reject(key, fmt::format("a number from {} to {}", least, most));
  }
  return value->get<double>();
}

std::optional<bool> ConfigReader::boolean(std::string_view key) const {
  const auto* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) reject(key, "true or false");
  return value->get<bool>();
}

std::optional<std::string> ConfigReader::string(std::string_view key) const {
  const auto* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) reject(key, "a string");
  return value->get<std::string>();
}

}  // namespace quintet
