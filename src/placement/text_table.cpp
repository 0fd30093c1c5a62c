#include "placement/text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace quintet {

std::string aligned(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (size_t c = 0; c < row.size(); ++c) {
      line += c == 0 ? fmt::format("{:<{}}", row[c], widths[c])
                     : fmt::format("  {:>{}}", row[c], widths[c]);
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string wrapped(const std::string& text) {
  std::string out;
  size_t begin = 0;
  while (text.size() - begin > kPageWidth) {
    size_t end = text.rfind(' ', begin + kPageWidth);
    if (end == std::string::npos || end <= begin) end = text.find(' ', begin);
    if (end == std::string::npos) break;
    out += text.substr(begin, end - begin) + "\n";
    begin = end + 1;
  }
  return out + text.substr(begin) + "\n";
}

std::string shortened(const std::string& text, size_t longest) {
  return text.size() <= longest ? text : text.substr(0, longest - 3) + "...";
}

std::string thousands(int64_t value) {
  if (value < 1000) return fmt::format("{}", value);
  return fmt::format("{},{:03}", thousands(value / 1000), value % 1000);
}

std::string readable_rate(double per_second) {
  return per_second >= 100 ? thousands(std::llround(per_second))
                           : fmt::format("{:.3g}", per_second);
}

}  // namespace quintet
