// Where input bytes come from: a file, stdin or memory, unpacked on the way where they are gzip.
#ifndef QUINTET_INPUT_BYTE_SOURCE_H_
#define QUINTET_INPUT_BYTE_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace quintet {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // At most `size` bytes; 0 only at the end. Throws Error(kIo), and Error(kFile) for broken gzip.
  virtual size_t read(char* data, size_t size) = 0;
  virtual uint64_t bytes_read() const = 0;   // as they lie in the file: compressed
  virtual uint64_t bytes_total() const = 0;  // 0: unknown
};

std::unique_ptr<ByteSource> open_file(const std::string& path);  // "-" is stdin
std::unique_ptr<ByteSource> from_memory(std::string bytes);
// Looks at the first two bytes: gzip is unpacked (any number of members), all else passed on.
// `name` stands in messages.
std::unique_ptr<ByteSource> unpack_gzip(std::unique_ptr<ByteSource> packed, std::string name);

}  // namespace quintet

#endif  // QUINTET_INPUT_BYTE_SOURCE_H_
