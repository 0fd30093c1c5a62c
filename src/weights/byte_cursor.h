// Reads little-endian numbers and runs of bytes one after the other, never past the end.
#ifndef QUINTET_WEIGHTS_BYTE_CURSOR_H_
#define QUINTET_WEIGHTS_BYTE_CURSOR_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "core/error.h"

namespace quintet {

static_assert(std::endian::native == std::endian::little, "weight files are little-endian");

class ByteCursor {
 public:
  // `where` names the file in messages and outlives the cursor.
  ByteCursor(std::span<const std::byte> bytes, const std::string& where, uint64_t position = 0)
      : bytes_(bytes), where_(where) {
    seek(position);
  }

  size_t position() const { return position_; }
  size_t left() const { return bytes_.size() - position_; }

  void seek(uint64_t position) {
    if (position > bytes_.size()) {
      fail(ErrorKind::kFile, "{}: cut short or damaged: points to byte {} of {}", where_, position,
           bytes_.size());
    }
    position_ = static_cast<size_t>(position);
  }

  std::span<const std::byte> take(uint64_t count) {
    if (count > left()) {
      fail(ErrorKind::kFile, "{}: cut short or damaged: wants {} bytes at byte {} of {}", where_,
           count, position_, bytes_.size());
    }
    const auto run = bytes_.subspan(position_, static_cast<size_t>(count));
    position_ += run.size();
    return run;
  }

  std::string_view text(uint64_t count) {
    const auto run = take(count);
    return {reinterpret_cast<const char*>(run.data()), run.size()};
  }

  template <typename T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
  const std::string& where_;
  size_t position_ = 0;
};

}  // namespace quintet

#endif  // QUINTET_WEIGHTS_BYTE_CURSOR_H_
