#include "backends/host_memory.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <string>

namespace quintet {
namespace {

namespace fs = std::filesystem;

// The number that a file begins with; "max" and the like are none.
std::optional<size_t> read_number(const fs::path& file) {
  std::ifstream stream(file);
  std::string text;
  stream >> text;
  size_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

// The number after `key` in a file of lines "key number ...".
size_t read_field(const fs::path& file, const std::string& key) {
  std::ifstream stream(file);
  std::string line;
  while (std::getline(stream, line)) {
    if (line.compare(0, key.size() + 1, key + " ") != 0) continue;
    const size_t begin = line.find_first_not_of(' ', key.size());
    size_t value = 0;
    if (begin != std::string::npos) {
      std::from_chars(line.data() + begin, line.data() + line.size(), value);
    }
    return value;
  }
  return 0;
}

// The files of one version of cgroups.
struct CgroupFiles {
  const char* limit;
  const char* usage;
  const char* inactive;  // key in memory.stat of file pages that go when memory is short
};

constexpr CgroupFiles kVersion2 = {"memory.max", "memory.current", "inactive_file"};
constexpr CgroupFiles kVersion1 = {"memory.limit_in_bytes", "memory.usage_in_bytes",
                                   "total_inactive_file"};

// Cuts `memory` to the limits of `group` and of the groups above it. In a container the path that
// /proc tells may be that of the host; what is not there is passed over, the root is always looked
// at.
void apply_limits(HostMemory& memory, const fs::path& root, const std::string& group,
                  const CgroupFiles& files) {
  fs::path relative = fs::path(group).relative_path();
  while (true) {
    const fs::path folder = root / relative;
    if (const auto limit = read_number(folder / files.limit)) {
      const size_t usage = read_number(folder / files.usage).value_or(0);
      const size_t inactive = read_field(folder / "memory.stat", files.inactive);
      const size_t held = usage - std::min(usage, inactive);
      memory.total = std::min(memory.total, *limit);
      memory.free = std::min(memory.free, *limit - std::min(*limit, held));
    }
    if (relative.empty()) return;
    relative = relative.parent_path();
  }
}

bool has_memory_controller(const std::string& controllers) {
  return ("," + controllers + ",").find(",memory,") != std::string::npos;
}

}  // namespace

HostMemory host_memory(const fs::path& proc, const fs::path& cgroups) {
  HostMemory memory;
  memory.total = read_field(proc / "meminfo", "MemTotal:") * 1024;
  memory.free = std::min(memory.total, read_field(proc / "meminfo", "MemAvailable:") * 1024);
  std::ifstream groups(proc / "self" / "cgroup");
  std::string line;
  while (std::getline(groups, line)) {  // "0::/user.slice" or "4:memory:/docker/1234"
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty()) {
      apply_limits(memory, cgroups, group, kVersion2);
      apply_limits(memory, cgroups / "unified", group, kVersion2);
    } else if (has_memory_controller(controllers)) {
      apply_limits(memory, cgroups / "memory", group, kVersion1);
    }
  }
  return memory;
}

HostMemory host_memory() { return host_memory("/proc", "/sys/fs/cgroup"); }

}  // namespace quintet
