#include "placement/calibration.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <optional>
#include <sstream>
#include <system_error>

#include "core/error.h"
#include "core/json.h"

namespace quintet {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// No device is slower or faster, in flops or bytes per second: other numbers are not measured ones.
constexpr double kSlowest = 1e6;
constexpr double kFastest = 1e16;

constexpr JsonLimits kCacheLimits = {.max_bytes = 64 << 10, .max_depth = 4};

struct Field {
  const char* name;
  double DeviceSpeed::*value;
};

constexpr Field kFields[] = {{"float32_flops", &DeviceSpeed::float32_flops},
                             {"bfloat16_flops", &DeviceSpeed::bfloat16_flops},
                             {"float16_flops", &DeviceSpeed::float16_flops},
                             {"attention_flops", &DeviceSpeed::attention_flops},
                             {"bytes_per_second", &DeviceSpeed::bytes_per_second}};

std::string key_text(const CalibrationKey& key) {
  return fmt::format("{} | {} threads | {}", key.hardware, key.threads, key.version);
}

// FNV-1a: a short file name for a long key. The key itself stands in the file and is compared.
uint64_t hash(const std::string& text) {
  uint64_t value = 14695981039346656037U;
  for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return value;
}

std::optional<DeviceSpeed> read_speed(const fs::path& file, const CalibrationKey& key) {
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored)) return std::nullopt;
  try {
    const json value = parse_json_file(file, kCacheLimits);
    if (value.at("key").get<std::string>() != key_text(key)) return std::nullopt;
    DeviceSpeed speed;
    for (const Field& field : kFields) {
      const auto number = value.at(field.name).get<double>();
      if (!(number >= kSlowest && number <= kFastest)) return std::nullopt;
      speed.*field.value = number;
    }
    return speed;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

// Written beside its place and renamed into it, so that a reader sees all of it or nothing.
void write_speed(const fs::path& file, const CalibrationKey& key, const DeviceSpeed& speed) {
  static std::atomic<int> counter = 0;
  json value = {{"key", key_text(key)}};
  for (const Field& field : kFields) value[field.name] = speed.*field.value;
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  if (error) return;
  const fs::path partial =
      file.string() + fmt::format(".{}.{}.partial", ::getpid(), counter.fetch_add(1));
  std::ofstream stream(partial);
  stream << value.dump(2, ' ', false, json::error_handler_t::replace) << '\n';
  stream.close();
  if (stream) fs::rename(partial, file, error);
  if (!stream || error) fs::remove(partial, error);
}

}  // namespace

DeviceSpeed calibrate(const CalibrationKey& key, const std::function<DeviceSpeed()>& measure,
                      const fs::path& folder) {
  if (folder.empty()) return measure();
  const fs::path file = folder / fmt::format("speed-{:016x}.json", hash(key_text(key)));
  if (const auto kept = read_speed(file, key)) return *kept;
  const DeviceSpeed speed = measure();
  write_speed(file, key, speed);
  return speed;
}

}  // namespace quintet
