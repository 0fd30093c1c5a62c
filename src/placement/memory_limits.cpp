#include "placement/memory_limits.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "core/error.h"
#include "core/split_list.h"

namespace quintet {
namespace {

// Bytes of a unit in lower case; 0: no such unit.
int64_t unit_bytes(const std::string& unit) {
  constexpr int64_t kDecimal[] = {1000, 1000000, 1000000000, 1000000000000};
  if (unit.empty() || unit == "b") return 1;
  const size_t power = std::string_view("kmgt").find(unit[0]);
  if (power == std::string_view::npos) return 0;
  const std::string rest = unit.substr(1);
  if (rest == "b") return kDecimal[power];
  if (rest.empty() || rest == "ib" || rest == "i") return int64_t{1} << (10 * (power + 1));
  return 0;
}

}  // namespace

int64_t parse_size(std::string_view text, const std::string& option) {
  double value = 0;
  const auto parsed =
      std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  std::string unit;
  for (const char* p = parsed.ptr; p != text.data() + text.size(); ++p) {
    if (*p != ' ') unit += static_cast<char>(std::tolower(static_cast<unsigned char>(*p)));
  }
  const int64_t factor = unit_bytes(unit);
  if (parsed.ec != std::errc() || factor == 0 || !std::isfinite(value) || value < 0) {
    fail(ErrorKind::kUsage, "{}: '{}' is not a size; write 2GiB, 500MB or a number of bytes",
         option, text);
  }
  const double bytes = value * static_cast<double>(factor);
  if (bytes < 1 || bytes >= 0x1p62) {
    fail(ErrorKind::kUsage, "{}: '{}' is out of range, expected from 1 byte to 4194304 TiB", option,
         text);
  }
  return static_cast<int64_t>(bytes);
}

MemoryLimits parse_memory_limits(const std::string& text, const std::string& option) {
  MemoryLimits limits;
  const auto items = split_list(text);
  if (items.empty()) {
    fail(ErrorKind::kUsage, "{} is empty; write 2GiB, or cpu[0]=2GiB,cpu[1]=500MB", option);
  }
  for (const std::string& item : items) {
    const size_t equals = item.find('=');
    if (equals == std::string::npos) {
      if (limits.every) fail(ErrorKind::kUsage, "{}: two sizes for every device: {}", option, text);
      limits.every = parse_size(item, option);
      continue;
    }
    const std::string device = item.substr(0, item.find_last_not_of(" \t", equals - 1) + 1);
    const size_t begin = item.find_first_not_of(" \t", equals + 1);
    if (equals == 0 || device.empty() || begin == std::string::npos) {
      fail(ErrorKind::kUsage, "{}: '{}' is not DEVICE=SIZE, such as cpu[0]=2GiB", option, item);
    }
    const auto same = [&](const auto& limit) { return limit.first == device; };
    if (std::any_of(limits.per_device.begin(), limits.per_device.end(), same)) {
      fail(ErrorKind::kUsage, "{}: device '{}' stands twice", option, device);
    }
    limits.per_device.emplace_back(device, parse_size(item.substr(begin), option));
  }
  return limits;
}

}  // namespace quintet
