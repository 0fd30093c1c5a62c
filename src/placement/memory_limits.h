// --max-memory: how much of each device a plan may use.
#ifndef QUINTET_PLACEMENT_MEMORY_LIMITS_H_
#define QUINTET_PLACEMENT_MEMORY_LIMITS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace quintet {

struct MemoryLimits {
  std::optional<int64_t> every;                             // of each device not named
  std::vector<std::pair<std::string, int64_t>> per_device;  // names as written
};

// "2GiB", "500MB", "1.5 GiB", "1048576" to bytes: KB MB GB TB count by 1000, KiB MiB GiB TiB (and
// plain K M G T) by 1024. Throws Error(kUsage) that begins with `option`.
int64_t parse_size(std::string_view text, const std::string& option);

// "cpu[0]=2GiB,cpu[1]=500MB", or "2GiB" for every device, or both kinds mixed.
MemoryLimits parse_memory_limits(const std::string& text,
                                 const std::string& option = "--max-memory");

}  // namespace quintet

#endif  // QUINTET_PLACEMENT_MEMORY_LIMITS_H_
