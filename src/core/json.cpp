#include "core/json.h"

#include <unordered_set>
#include <vector>

#include "core/error.h"
#include "core/file_map.h"

namespace quintet {
namespace {

using nlohmann::json;

// Watches the parser's events; the first broken rule is kept, as a callback may not throw it.
class Guard {
 public:
  explicit Guard(int max_depth) : max_depth_(max_depth) {}

  bool operator()(int depth, json::parse_event_t event, json& parsed) {
    if (!problem_.empty()) return false;
    switch (event) {
      case json::parse_event_t::object_start:
      case json::parse_event_t::array_start:
        if (depth >= max_depth_) problem_ = fmt::format("nested deeper than {}", max_depth_);
        if (event == json::parse_event_t::object_start) keys_.emplace_back();
        break;
      case json::parse_event_t::object_end:
        keys_.pop_back();
        break;
      case json::parse_event_t::key: {
        const auto& key = parsed.get_ref<const std::string&>();
        if (!keys_.back().insert(key).second) problem_ = fmt::format("key '{}' stands twice", key);
        break;
      }
      default:
        break;
    }
    return problem_.empty();
  }

  const std::string& problem() const { return problem_; }

 private:
  int max_depth_;
  std::string problem_;
  std::vector<std::unordered_set<std::string>> keys_;
};

}  // namespace

json parse_json(std::string_view text, const std::string& where, JsonLimits limits) {
  if (text.size() > limits.max_bytes) {
    fail(ErrorKind::kFile, "{}: {} bytes of JSON, at most {} are read", where, text.size(),
         limits.max_bytes);
  }
  Guard guard(limits.max_depth);
  json value;
  try {
    value = json::parse(text.begin(), text.end(), std::ref(guard));
  } catch (const json::exception& error) {
    if (guard.problem().empty()) {
      fail(ErrorKind::kFile, "{}: not valid JSON: {}", where, error.what());
    }
  }
  if (!guard.problem().empty()) fail(ErrorKind::kFile, "{}: JSON {}", where, guard.problem());
  return value;
}

json parse_json_file(const std::filesystem::path& path, JsonLimits limits) {
  const FileMap file(path);
  const auto bytes = file.bytes();
  return parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path.string(),
                    limits);
}

}  // namespace quintet
