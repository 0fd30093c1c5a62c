#include "tokenizer/base64.h"

#include <cstdint>

#include "core/error.h"

namespace quintet {
namespace {

int digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  return c == '/' ? 63 : -1;
}

}  // namespace

std::string decode_base64(std::string_view text, const std::string& where) {
  if (text.size() % 4 != 0) {
    fail(ErrorKind::kFile, "{}: base64 of {} characters, a multiple of 4 expected", where,
         text.size());
  }
  size_t n_padding = 0;
  while (n_padding < 2 && text.size() > n_padding && text[text.size() - 1 - n_padding] == '=') {
    ++n_padding;
  }
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (size_t group = 0; group < text.size(); group += 4) {
    uint32_t bits = 0;
    for (size_t i = group; i < group + 4; ++i) {
      const int value = i < text.size() - n_padding ? digit(text[i]) : 0;
      if (value < 0) {
        fail(ErrorKind::kFile, "{}: character {} of the base64 is not of its alphabet", where, i);
      }
      bits = (bits << 6) | static_cast<uint32_t>(value);
    }
    for (int shift = 16; shift >= 0; shift -= 8) {
      bytes += static_cast<char>((bits >> shift) & 0xFF);
    }
  }
  bytes.resize(bytes.size() - n_padding);
  return bytes;
}

}  // namespace quintet
