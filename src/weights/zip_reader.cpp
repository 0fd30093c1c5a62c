#include "weights/zip_reader.h"

#include <algorithm>
#include <unordered_set>

#include "weights/byte_cursor.h"
#include "weights/tensor_file.h"

namespace quintet {
namespace {

using Bytes = std::span<const std::byte>;

constexpr uint32_t kLocalHeader = 0x04034B50;
constexpr uint32_t kCentralHeader = 0x02014B50;
constexpr uint32_t kEnd = 0x06054B50;
constexpr uint32_t kEnd64 = 0x06064B50;
constexpr uint32_t kEnd64Locator = 0x07064B50;
constexpr uint64_t kEndSize = 22;
constexpr uint64_t kLocatorSize = 20;
constexpr uint64_t kEnd64Size = 56;
constexpr uint64_t kMaxEntries = 1'000'000;
constexpr uint32_t kSeeZip64 = 0xFFFFFFFF;

// Where the central directory lies.
struct Directory {
  uint64_t entries = 0;
  uint64_t begin = 0;
  uint64_t size = 0;
};

struct Place {
  std::string_view name;
  uint64_t header = 0;  // of the local header
  uint64_t size = 0;
};

uint64_t find_end(Bytes bytes, const std::string& where) {
  if (bytes.size() >= kEndSize) {
    const uint64_t last = bytes.size() - kEndSize;
    for (uint64_t back = 0; back <= std::min<uint64_t>(last, 0xFFFF); ++back) {
      ByteCursor cursor(bytes, where, last - back);
      if (cursor.number<uint32_t>() != kEnd) continue;
      cursor.take(16);
      if (cursor.number<uint16_t>() == back) return last - back;
    }
  }
  fail(ErrorKind::kFile, "{}: no zip directory at its end; is the file cut short?", where);
}

void check_volumes(uint64_t here, uint64_t all, const std::string& where) {
  if (here != all) fail(ErrorKind::kFile, "{}: a zip archive of several volumes: refused", where);
}

Directory read_end64(Bytes bytes, uint64_t locator, const std::string& where) {
  ByteCursor cursor(bytes, where, locator + 8);
  const auto at = cursor.number<uint64_t>();
  if (at > locator || locator - at < kEnd64Size) {
    fail(ErrorKind::kFile, "{}: zip64 directory end at byte {}, expected before {}", where, at,
         locator);
  }
  cursor.seek(at);
  if (cursor.number<uint32_t>() != kEnd64) {
    fail(ErrorKind::kFile, "{}: no zip64 directory end at byte {}", where, at);
  }
  cursor.take(20);
  const auto here = cursor.number<uint64_t>();
  Directory directory;
  directory.entries = cursor.number<uint64_t>();
  check_volumes(here, directory.entries, where);
  directory.size = cursor.number<uint64_t>();
  directory.begin = cursor.number<uint64_t>();
  if (directory.begin > at || directory.size > at - directory.begin) {
    fail(ErrorKind::kFile, "{}: zip directory of {} bytes at {} runs past its end at {}", where,
         directory.size, directory.begin, at);
  }
  return directory;
}

Directory find_directory(Bytes bytes, const std::string& where) {
  const uint64_t end = find_end(bytes, where);
  if (end >= kLocatorSize) {
    ByteCursor cursor(bytes, where, end - kLocatorSize);
    if (cursor.number<uint32_t>() == kEnd64Locator) {
      return read_end64(bytes, end - kLocatorSize, where);
    }
  }
  ByteCursor cursor(bytes, where, end + 8);
  const auto here = cursor.number<uint16_t>();
  Directory directory;
  directory.entries = cursor.number<uint16_t>();
  check_volumes(here, directory.entries, where);
  directory.size = cursor.number<uint32_t>();
  directory.begin = cursor.number<uint32_t>();
  if (directory.begin > end || directory.size > end - directory.begin) {
    fail(ErrorKind::kFile, "{}: zip directory of {} bytes at {} runs past its end at {}", where,
         directory.size, directory.begin, end);
  }
  return directory;
}

// The values of the zip64 extra field, which holds those that read 0xFFFFFFFF in the entry itself,
// in this order.
void widen_from_extra(Bytes extra, uint64_t& size, uint64_t& packed_size, uint64_t& header,
                      const std::string& where) {
  ByteCursor cursor(extra, where);
  while (cursor.left() >= 4) {
    const auto id = cursor.number<uint16_t>();
    const Bytes body = cursor.take(cursor.number<uint16_t>());
    if (id != 1) continue;
    ByteCursor values(body, where);
    for (uint64_t* value : {&size, &packed_size, &header}) {
      if (*value == kSeeZip64) *value = values.number<uint64_t>();
    }
    return;
  }
}

Place read_central_header(ByteCursor& cursor, const std::string& where) {
  if (cursor.number<uint32_t>() != kCentralHeader) {
    fail(ErrorKind::kFile, "{}: damaged zip directory", where);
  }
  cursor.take(4);
  const auto flags = cursor.number<uint16_t>();
  const auto method = cursor.number<uint16_t>();
  cursor.take(8);
  uint64_t packed_size = cursor.number<uint32_t>();
  Place place;
  place.size = cursor.number<uint32_t>();
  const auto name_size = cursor.number<uint16_t>();
  const auto extra_size = cursor.number<uint16_t>();
  const auto comment_size = cursor.number<uint16_t>();
  cursor.take(8);
  place.header = cursor.number<uint32_t>();
  place.name = cursor.text(name_size);
  widen_from_extra(cursor.take(extra_size), place.size, packed_size, place.header, where);
  cursor.take(comment_size);
  constexpr uint16_t kEncrypted = 1;
  if ((flags & kEncrypted) != 0 || method != 0 || packed_size != place.size) {
    fail(ErrorKind::kFile,
         "{}: zip entry '{}' is compressed or encrypted; only stored ones are "
         "read, save the file anew with torch.save",
         where, printable(place.name));
  }
  return place;
}

// Finds the entry's bytes behind its local header, which must agree on the name.
Bytes locate(Bytes bytes, const Place& place, const std::string& where) {
  ByteCursor cursor(bytes, where, place.header);
  const bool is_header = cursor.number<uint32_t>() == kLocalHeader;
  cursor.take(22);
  const auto name_size = cursor.number<uint16_t>();
  const auto extra_size = cursor.number<uint16_t>();
  if (!is_header || cursor.text(name_size) != place.name) {
    fail(ErrorKind::kFile, "{}: no zip entry '{}' at byte {}", where, printable(place.name),
         place.header);
  }
  cursor.take(extra_size);
  return cursor.take(place.size);
}

}  // namespace

std::vector<ZipEntry> read_stored_zip(Bytes bytes, const std::string& where) {
  const Directory directory = find_directory(bytes, where);
  if (directory.entries > kMaxEntries) {
    fail(ErrorKind::kFile, "{}: {} zip entries, at most {} are read", where, directory.entries,
         kMaxEntries);
  }
  // Entries lie before the directory, so every offset is checked against that part of the file.
  const Bytes before = bytes.first(static_cast<size_t>(directory.begin));
  ByteCursor cursor(bytes.first(static_cast<size_t>(directory.begin + directory.size)), where,
                    directory.begin);
  std::vector<ZipEntry> entries;
  std::vector<std::pair<uint64_t, uint64_t>> ranges;  // begin and end of each, header included
  std::unordered_set<std::string_view> names;
  for (uint64_t i = 0; i < directory.entries; ++i) {
    const Place place = read_central_header(cursor, where);
    const Bytes data = locate(before, place, where);
    if (!names.insert(place.name).second) {
      fail(ErrorKind::kFile, "{}: zip entry '{}' stands twice", where, printable(place.name));
    }
    ranges.emplace_back(place.header, data.data() + data.size() - bytes.data());
    entries.push_back({place.name, data});
  }
  if (cursor.left() != 0) {
    fail(ErrorKind::kFile, "{}: {} bytes after the {} entries of the zip directory", where,
         cursor.left(), directory.entries);
  }
  std::sort(ranges.begin(), ranges.end());
  for (size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].first < ranges[i - 1].second) {
      fail(ErrorKind::kFile, "{}: two zip entries overlap at byte {}", where, ranges[i].first);
    }
  }
  return entries;
}

}  // namespace quintet
