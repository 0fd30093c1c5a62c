// A read-only memory map of a whole file. Readers take what they need; release() gives the pages
// back to the system, so that a checkpoint of many GiB passes through without staying resident.
#ifndef QUINTET_CORE_FILE_MAP_H_
#define QUINTET_CORE_FILE_MAP_H_

#include <cstddef>
#include <filesystem>
#include <span>

namespace quintet {

class FileMap {
 public:
  explicit FileMap(const std::filesystem::path& path);  // throws Error(kIo); an empty file is fine
  // `shown` names the file in path() and messages, where `path` is what links led to.
  FileMap(const std::filesystem::path& path, std::filesystem::path shown);
  ~FileMap();
  FileMap(const FileMap&) = delete;
  FileMap& operator=(const FileMap&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  size_t size() const { return size_; }

  // Drops the resident pages that lie wholly inside [begin, begin + size); they are read anew from
  // the file (or its cache) when touched again.
  void release(const void* begin, size_t size) const;

 private:
  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace quintet

#endif  // QUINTET_CORE_FILE_MAP_H_
