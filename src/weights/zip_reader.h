// The entries of a zip archive that are stored without compression, as torch.save writes them,
// straight from its bytes. Zip64 too.
#ifndef QUINTET_WEIGHTS_ZIP_READER_H_
#define QUINTET_WEIGHTS_ZIP_READER_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace quintet {

struct ZipEntry {
  std::string_view name;
  std::span<const std::byte> data;
};

// All entries in the order of the central directory. Throws Error(kFile) that begins with `where`
// on compression, encryption, several volumes, two entries of one name, entries that overlap or
// leave the file.
std::vector<ZipEntry> read_stored_zip(std::span<const std::byte> bytes, const std::string& where);

}  // namespace quintet

#endif  // QUINTET_WEIGHTS_ZIP_READER_H_
