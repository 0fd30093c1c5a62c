#include "conformance/spec.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/json.h"

namespace quintet::conformance {
namespace {

using nlohmann::json;

constexpr JsonLimits kSpecLimits = {.max_bytes = size_t{1} << 20, .max_depth = 4};
constexpr std::array<std::string_view, 8> kKeys = {"device_name", "devices",        "module",
                                                   "manual_seed", "empty_cache",    "device_count",
                                                   "tolerance",   "skip_if_missing"};

std::string shown(const json& value) {
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  return text.size() <= 60 ? text : text.substr(0, 57) + "...";
}

class SpecReader {
 public:
  SpecReader(const json& spec, const std::string& where) : spec_(spec), where_(where) {
    if (!spec.is_object()) {
      refuse("holds {}, expected an object such as {{\"device_name\": \"mydev\"}}",
             spec.type_name());
    }
    for (const auto& [key, value] : spec.items()) {
      if (std::ranges::find(kKeys, key) == kKeys.end()) {
        refuse("unknown key '{}'; the keys are {}", key, fmt::join(kKeys, ", "));
      }
    }
  }

  bool has(const char* key) const { return spec_.contains(key); }

  bool boolean(const char* key) const {
    const auto found = spec_.find(key);
    if (found == spec_.end()) return false;
    if (!found->is_boolean()) reject(key, *found, "true or false");
    return found->get<bool>();
  }

  double tolerance(double otherwise) const {
    const auto found = spec_.find("tolerance");
    if (found == spec_.end()) return otherwise;
    const double value = found->is_number() ? found->get<double>() : -1;
    if (!(value >= 0 && value <= 1)) reject("tolerance", *found, "a number from 0 to 1");
    return value;
  }

  std::string file(const char* key) const {
    const auto found = spec_.find(key);
    return found == spec_.end() ? "" : text(key, *found, "the file of a backend module");
  }

  // A list of names of devices, none of them twice.
  std::vector<std::string> names(const char* key) const {
    const json& value = spec_.at(key);
    if (!value.is_array() || value.empty()) {
      reject(key, value, "a list of devices such as [\"mydev:0\", \"mydev:1\"]");
    }
    std::vector<std::string> names;
    for (const json& item : value) {
      std::string name = text(key, item, "the name of a device such as \"mydev:0\"");
      if (std::ranges::find(names, name) != names.end()) {
        refuse("'{}' names {} twice; name each device once", key, name);
      }
      names.push_back(std::move(name));
    }
    return names;
  }

  std::string text(const char* key, const json& value, const char* expected) const {
    const bool blank = !value.is_string() || value.get_ref<const std::string&>().find_first_not_of(
                                                 " \t") == std::string::npos;
    if (blank) reject(key, value, expected);
    return value.get<std::string>();
  }

  [[noreturn]] void reject(const char* key, const json& value, const char* expected) const {
    refuse("'{}' is {}, expected {}", key, shown(value), expected);
  }

  template <typename... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ErrorKind::kUsage, "{}: {}", where_, fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  const json& spec_;
  const std::string& where_;
};

// "device_name" and "devices": a kind with all its devices or those listed, one device, or a mix.
void read_devices(const SpecReader& reader, const json& spec, DeviceSpec& result) {
  const char* const expected =
      "the name of a kind such as \"mydev\", or a list of devices such as "
      "[\"cpu[0]\", \"mydev:0\"]";
  if (!reader.has("device_name")) {
    reader.refuse("has no 'device_name', expected {}", expected);
  }
  const json& given = spec.at("device_name");
  if (given.is_array()) {
    if (reader.has("devices")) {
      reader.refuse("'device_name' is a list, so 'devices' says nothing more; leave it out");
    }
    result.devices = reader.names("device_name");
    return;
  }
  const std::string name = reader.text("device_name", given, expected);
  result.kind = kind_of(name);
  if (result.kind != name) {  // one device
    if (reader.has("devices")) {
      reader.refuse("'device_name' is {}, one device; beside 'devices', name the kind: \"{}\"",
                    shown(given), result.kind);
    }
    result.devices = {name};
    return;
  }
  if (reader.has("devices")) {
    result.devices = reader.names("devices");
  } else if (!result.hooks.device_count) {
    reader.refuse(
        "the devices of kind '{}' are not known: either it can count them (\"device_count\": "
        "true), or 'devices' lists them",
        name);
  }
}

void check_kinds(const SpecReader& reader, DeviceSpec& result) {
  if (result.devices.empty()) return;
  const std::string first = kind_of(result.devices.front());
  for (const std::string& device : result.devices) {
    if (!result.kind.empty() && kind_of(device) != result.kind) {
      reader.refuse(
          "'devices' lists {}, which is not of kind '{}'; a mix is a list in 'device_name'", device,
          result.kind);
    }
  }
  const bool one_kind = std::ranges::all_of(
      result.devices, [&](const std::string& device) { return kind_of(device) == first; });
  if (one_kind) result.kind = first;
}

}  // namespace

std::string kind_of(const std::string& device) {
  return device.substr(0, device.find_first_of(":["));
}

DeviceSpec parse_device_spec(std::string_view text, const std::string& where,
                             const std::filesystem::path& folder) {
  json spec;
  try {
    spec = parse_json(text, where, kSpecLimits);
  } catch (const Error& error) {
    throw Error(ErrorKind::kUsage, error.what());
  }
  const SpecReader reader(spec, where);
  DeviceSpec result;
  result.file = where;
  result.hooks = {.manual_seed = reader.boolean("manual_seed"),
                  .empty_cache = reader.boolean("empty_cache"),
                  .device_count = reader.boolean("device_count")};
  result.skip_if_missing = reader.boolean("skip_if_missing");
  result.tolerance = reader.tolerance(result.tolerance);
  read_devices(reader, spec, result);
  check_kinds(reader, result);
  if (const std::string module = reader.file("module"); !module.empty()) {
    result.module = folder / module;  // an absolute one stays as it is
  }
  return result;
}

DeviceSpec read_device_spec(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) {
    fail(ErrorKind::kUsage, "--device-spec {}: no such file", file.string());
  }
  std::ifstream stream(file, std::ios::binary);
  std::string text;
  std::vector<char> bytes(kSpecLimits.max_bytes + 1);
  stream.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  text.assign(bytes.data(), static_cast<size_t>(stream.gcount()));
  if (stream.bad() || !(stream || stream.eof())) {
    fail(ErrorKind::kUsage, "--device-spec {}: cannot be read", file.string());
  }
  return parse_device_spec(text, file.string(), std::filesystem::absolute(file).parent_path());
}

}  // namespace quintet::conformance
