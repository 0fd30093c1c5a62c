// Values of a config.json by key, checked: what is wrong is told with file, key, found, expected.
#ifndef QUINTET_MODELS_CONFIG_READER_H_
#define QUINTET_MODELS_CONFIG_READER_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace quintet {

class ConfigReader {
 public:
  struct Range {
    int64_t least = 0;
    int64_t most = 0;
  };

  // Throws Error(kFile) where `config` is not an object. Both must outlive the reader.
  ConfigReader(const nlohmann::json& config, const std::string& where);

  // A key that is absent or null gives nothing; one of another type or out of range, Error(kFile).
  std::optional<int64_t> integer(std::string_view key, Range range) const;
  // One whole number, or a list of some.
  std::optional<std::vector<int64_t>> integers(std::string_view key, Range range) const;
  std::optional<double> number(std::string_view key, double least, double most) const;
  std::optional<bool> boolean(std::string_view key) const;
  std::optional<std::string> string(std::string_view key) const;
  std::vector<std::string> strings(std::string_view key) const;  // a list; none where it is absent
  bool is_null(std::string_view key) const;                      // there, and null

  // Throws Error(kFile): "config.json: 'key' is <its value>, expected <expected>".
  [[noreturn]] void reject(std::string_view key, std::string_view expected) const;

 private:
  const nlohmann::json* find(std::string_view key) const;

  const nlohmann::json& config_;
  const std::string& where_;
};

}  // namespace quintet

#endif  // QUINTET_MODELS_CONFIG_READER_H_
