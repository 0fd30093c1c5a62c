// JSON from files that nobody vouches for: bounded in size and depth, no duplicate keys.
#ifndef QUINTET_CORE_JSON_H_
#define QUINTET_CORE_JSON_H_

#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace quintet {

struct JsonLimits {
  size_t max_bytes = size_t{256} << 20;
  int max_depth = 64;
};

// Throws Error(kFile) that begins with `where` (a file name, or file:line) and says what is wrong.
nlohmann::json parse_json(std::string_view text, const std::string& where, JsonLimits limits = {});
nlohmann::json parse_json_file(const std::filesystem::path& path, JsonLimits limits = {});

}  // namespace quintet

#endif  // QUINTET_CORE_JSON_H_
