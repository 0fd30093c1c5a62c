#include "core/json.h"

#include <algorithm>
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

std::string json_problem(size_t byte, std::string_view message) {
  // "[json.exception.parse_error.101] parse error at line 1, column 8: syntax error while parsing
  // value - unexpected ...": the tag and the place go, this program's own stands in for both.
  if (const size_t place = message.find(" parse error"); place != message.npos) {
    const size_t colon = message.find(": ", place);
    message.remove_prefix(colon == message.npos ? 0 : colon + 2);
  }
  if (message.starts_with("[json.exception")) {
    message.remove_prefix(std::min(message.find("] ") + 2, message.size()));
  }
  if (message.starts_with("syntax error while parsing ")) {
    const size_t dash = message.find(" - ");
    message.remove_prefix(dash == message.npos ? 0 : dash + 3);
  }
  constexpr size_t kMaxShown = 160;  // the library quotes the token it stumbled over, of any length
  std::string shown(message.substr(0, kMaxShown));
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return c < 0x20 || c > 0x7E; }, '?');
  return fmt::format("not valid JSON at byte {}: {}", byte, shown);
}

json parse_json(std::string_view text, const std::string& where, JsonLimits limits) {
  const std::string begin = where.empty() ? "" : where + ": ";
  if (text.size() > limits.max_bytes) {
    fail(ErrorKind::kFile, "{}{} bytes of JSON, at most {} are read", begin, text.size(),
         limits.max_bytes);
  }
  Guard guard(limits.max_depth);
  json value;
  try {
    value = json::parse(text.begin(), text.end(), std::ref(guard));
  } catch (const json::parse_error& error) {
    if (guard.problem().empty()) {
      fail(ErrorKind::kFile, "{}{}", begin, json_problem(error.byte, error.what()));
    }
  } catch (const json::exception&) {  // the one other fault: a number beyond all bounds
    if (guard.problem().empty()) {
      fail(ErrorKind::kFile, "{}not valid JSON: a number is out of range", begin);
    }
  }
  if (!guard.problem().empty()) fail(ErrorKind::kFile, "{}JSON {}", begin, guard.problem());
  return value;
}

json parse_json_file(const std::filesystem::path& path, JsonLimits limits) {
  const FileMap file(path);
  const auto bytes = file.bytes();
  return parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path.string(),
                    limits);
}

}  // namespace quintet
