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

// Throws Error(kFile) that begins with `where` (a file name, or file:line; none where that is
// empty) and says what is wrong.
nlohmann::json parse_json(std::string_view text, const std::string& where, JsonLimits limits = {});
// The parser library's words about a fault at `byte` (counted from 1), as this program says them:
// "not valid JSON at byte 8: ...".
std::string json_problem(size_t byte, std::string_view library_message);

nlohmann::json parse_json_file(const std::filesystem::path& path, JsonLimits limits = {});

}  // namespace quintet

#endif  // QUINTET_CORE_JSON_H_
