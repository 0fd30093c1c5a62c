#include "models/config_reader.h"

#include <algorithm>

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

bool is_integer_in(const nlohmann::json& value, ConfigReader::Range range) {
  if (value.is_number_unsigned()) {
    return value.get<uint64_t>() <= static_cast<uint64_t>(range.most) &&
           value.get<int64_t>() >= range.least;
  }
  return value.is_number_integer() && value.get<int64_t>() >= range.least &&
         value.get<int64_t>() <= range.most;
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
  if (!is_integer_in(*value, range)) {
    reject(key, fmt::format("a whole number from {} to {}", range.least, range.most));
  }
  return value->get<int64_t>();
}

std::optional<std::vector<int64_t>> ConfigReader::integers(std::string_view key,
                                                           Range range) const {
  constexpr size_t kMost = 1 << 10;
  const auto* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (is_integer_in(*value, range)) return std::vector<int64_t>{value->get<int64_t>()};
  const bool fits = value->is_array() && value->size() <= kMost &&
                    std::all_of(value->begin(), value->end(), [&](const nlohmann::json& element) {
                      return is_integer_in(element, range);
                    });
  if (!fits) {
    reject(key, fmt::format("a whole number from {} to {}, or a list of at most {}", range.least,
                            range.most, kMost));
  }
  return value->get<std::vector<int64_t>>();
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

std::vector<std::string> ConfigReader::strings(std::string_view key) const {
  const auto* value = find(key);
  if (value == nullptr) return {};
  const bool fits = value->is_array() && std::all_of(value->begin(), value->end(),
                                                     [](const auto& e) { return e.is_string(); });
  if (!fits) reject(key, "a list of strings");
  return value->get<std::vector<std::string>>();
}

}  // namespace quintet
