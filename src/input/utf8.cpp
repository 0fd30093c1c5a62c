#include <utf8proc.h>

#include "input/formats.h"

namespace quintet {

std::string valid_utf8(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    utf8proc_int32_t code_point = 0;
    const auto length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(bytes.data()),
                                         static_cast<utf8proc_ssize_t>(bytes.size()), &code_point);
    if (length > 0) {
      text += bytes.substr(0, static_cast<size_t>(length));
    } else {
      text += "\xEF\xBF\xBD";
    }
    bytes.remove_prefix(length > 0 ? static_cast<size_t>(length) : 1);
  }
  return text;
}

}  // namespace quintet
