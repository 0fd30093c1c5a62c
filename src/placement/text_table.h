// Tables and paragraphs of plain text for plans.
#ifndef QUINTET_PLACEMENT_TEXT_TABLE_H_
#define QUINTET_PLACEMENT_TEXT_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace quintet {

inline constexpr size_t kPageWidth = 100;  // columns

// Columns as wide as their widest cell, the first left-aligned, the others right.
std::string aligned(const std::vector<std::vector<std::string>>& rows);

// Breaks `text` at blanks into lines of at most kPageWidth columns.
std::string wrapped(const std::string& text);

// Cut to `longest` characters, three of them dots.
std::string shortened(const std::string& text, size_t longest);

std::string thousands(int64_t value);          // 12346 -> "12,346"
std::string readable_rate(double per_second);  // three digits, or thousands where there are more

}  // namespace quintet

#endif  // QUINTET_PLACEMENT_TEXT_TABLE_H_
