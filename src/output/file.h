// Files written so that a full disk or a crash leaves something that can be told from a whole file:
// every failure is an Error(kIo) with the file's name, and a finished file is renamed into place.
#ifndef QUINTET_OUTPUT_FILE_H_
#define QUINTET_OUTPUT_FILE_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace quintet {

// An open file descriptor with positioned reads and appending writes.
class File {
 public:
  enum class Mode { kRead, kReadWrite, kCreate };  // kCreate: anew, what was there is dropped
  File(std::filesystem::path path, Mode mode);
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  const std::filesystem::path& path() const { return path_; }
  int descriptor() const { return fd_; }
  uint64_t size() const;

  // All of `size` bytes at `offset`; Error(kIo) where the file ends before.
  void read_at(uint64_t offset, void* data, size_t size) const;
  // As many as there are, at most `size`.
  size_t read_some_at(uint64_t offset, void* data, size_t size) const;
  void write_at(uint64_t offset, const void* data, size_t size);
  void truncate(uint64_t size);
  void sync();                                          // contents onto the disk
  void begin_sync(uint64_t offset, size_t size) const;  // the same for a part, without waiting
  bool lock() const;  // exclusive, against other processes; false: somebody else holds it

 private:
  std::filesystem::path path_;
  int fd_ = -1;
};

// Collects small writes; close() puts all onto the disk. Dropped without close(): nothing promised.
class BufferedFile {
 public:
  explicit BufferedFile(const std::filesystem::path& path);
  void write(const void* data, size_t size);
  void write(std::string_view text) { write(text.data(), text.size()); }
  uint64_t position() const { return flushed_ + buffer_.size(); }
  void close();

 private:
  void flush();
  void write_through(const void* data, size_t size);

  File file_;
  std::vector<char> buffer_;
  uint64_t flushed_ = 0;
};

// Renames over `to` and puts the folder's entry onto the disk.
void replace_file(const std::filesystem::path& from, const std::filesystem::path& to);
void remove_if_there(const std::filesystem::path& path);
void sync_folder_of(const std::filesystem::path& path);
// Bytes that this user may still write to the file system of `path`; nothing where unknown.
std::optional<uint64_t> free_bytes_at(const std::filesystem::path& path);
// OUTPUT with `suffix` behind its name.
std::filesystem::path with_suffix(const std::filesystem::path& path, std::string_view suffix);

}  // namespace quintet

#endif  // QUINTET_OUTPUT_FILE_H_
