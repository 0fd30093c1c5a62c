// Sizes as people read them, for messages and tables.
#ifndef QUINTET_CORE_HUMAN_H_
#define QUINTET_CORE_HUMAN_H_

#include <fmt/format.h>

#include <cmath>
#include <concepts>
#include <string>

namespace quintet {

// 999 -> "999 B", 2415919104 -> "2.25 GiB": powers of 1024, three digits.
inline std::string human_bytes(double bytes) {
  if (std::fabs(bytes) < 1024) return fmt::format("{:.0f} B", bytes);
  const char* const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  int unit = -1;
  while (std::fabs(bytes) >= 1023.995 && unit < 5) {
    bytes /= 1024;
    ++unit;
  }
  const int digits = std::fabs(bytes) < 9.995 ? 2 : std::fabs(bytes) < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f} {}", bytes, digits, units[unit]);
}

template <std::integral Integer>
std::string human_bytes(Integer bytes) {
  return human_bytes(static_cast<double>(bytes));
}

}  // namespace quintet

#endif  // QUINTET_CORE_HUMAN_H_
