// Splits option values such as "cpu[0,2]=2GiB,cpu[1]=500MB" at the commas outside brackets.
#ifndef QUINTET_CORE_SPLIT_LIST_H_
#define QUINTET_CORE_SPLIT_LIST_H_

#include <string>
#include <string_view>
#include <vector>

namespace quintet {

// The items without surrounding blanks; an empty text has none, "a,,b" has an empty one.
inline std::vector<std::string> split_list(std::string_view text) {
  const auto trimmed = [](std::string_view item) {
    const size_t begin = item.find_first_not_of(" \t\r\n");
    if (begin == std::string_view::npos) return std::string();
    return std::string(item.substr(begin, item.find_last_not_of(" \t\r\n") - begin + 1));
  };
  std::vector<std::string> items;
  if (trimmed(text).empty()) return items;
  bool inside = false;
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[') inside = true;
    if (text[i] == ']') inside = false;
    if (text[i] == ',' && !inside) {
      items.push_back(trimmed(text.substr(begin, i - begin)));
      begin = i + 1;
    }
  }
  items.push_back(trimmed(text.substr(begin)));
  return items;
}

}  // namespace quintet

#endif  // QUINTET_CORE_SPLIT_LIST_H_
