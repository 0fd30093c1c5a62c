#include "backends/opencl/kernel_cache.h"

#include <fmt/format.h>
#include <unistd.h>
#include <xxhash.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <system_error>

namespace quintet::opencl {
namespace {

namespace fs = std::filesystem;

constexpr uintmax_t kLargestFile = uintmax_t{256} << 20;

// A file is this header, the key and the binary.
struct Header {
  char magic[8] = {'q', 'k', 'e', 'r', 'n', 'e', 'l', '1'};
  uint64_t key_bytes = 0;
  uint64_t binary_bytes = 0;
  uint64_t checksum = 0;  // XXH3 of key and binary
};

std::optional<std::vector<unsigned char>> unpack(const std::string& file, const std::string& key) {
  Header header;
  const Header expected;
  if (file.size() < sizeof(header)) return std::nullopt;
  std::memcpy(&header, file.data(), sizeof(header));
  const size_t body = file.size() - sizeof(header);
  if (std::memcmp(header.magic, expected.magic, sizeof(header.magic)) != 0 ||
      header.key_bytes != key.size() || key.size() > body ||
      header.binary_bytes != body - key.size() || header.binary_bytes == 0 ||
      file.compare(sizeof(header), key.size(), key) != 0 ||
      header.checksum != XXH3_64bits(file.data() + sizeof(header), body)) {
    return std::nullopt;
  }
  return std::vector<unsigned char>(file.end() - static_cast<ptrdiff_t>(header.binary_bytes),
                                    file.end());
}

}  // namespace

fs::path KernelCache::file_of(const std::string& key) const {
  return folder_ / fmt::format("{:016x}.kernels", XXH3_64bits(key.data(), key.size()));
}

std::optional<std::vector<unsigned char>> KernelCache::load(const std::string& key) const {
  if (folder_.empty()) return std::nullopt;
  const fs::path path = file_of(key);
  std::error_code error;
  if (!fs::is_regular_file(path, error) || fs::file_size(path, error) > kLargestFile || error) {
    return std::nullopt;
  }
  std::ifstream stream(path, std::ios::binary);
  const std::string file{std::istreambuf_iterator<char>(stream), {}};
  return unpack(file, key);
}

void KernelCache::store(const std::string& key, const std::vector<unsigned char>& binary) const {
  static std::atomic<int> counter = 0;
  if (folder_.empty() || binary.empty()) return;
  std::string body = key;
  body.append(binary.begin(), binary.end());
  Header header;
  header.key_bytes = key.size();
  header.binary_bytes = binary.size();
  header.checksum = XXH3_64bits(body.data(), body.size());
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) return;
  const fs::path path = file_of(key);
  const fs::path partial =
      path.string() + fmt::format(".{}.{}.partial", ::getpid(), counter.fetch_add(1));
  std::ofstream stream(partial, std::ios::binary);
  stream.write(reinterpret_cast<const char*>(&header), sizeof(header));
  stream.write(body.data(), static_cast<std::streamsize>(body.size()));
  stream.close();
  if (stream) fs::rename(partial, path, error);
  if (!stream || error) fs::remove(partial, error);
}

}  // namespace quintet::opencl
