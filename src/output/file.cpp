#include "output/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/human.h"

namespace quintet {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;
constexpr size_t kWriteBytes = size_t{1} << 30;  // one call to write() takes no more than 2 GiB

int flags_of(File::Mode mode) {
  switch (mode) {
    case File::Mode::kRead:
      return O_RDONLY;
    case File::Mode::kReadWrite:
      return O_RDWR | O_CREAT;
    case File::Mode::kCreate:
      return O_RDWR | O_CREAT | O_TRUNC;
  }
  return O_RDONLY;
}

[[noreturn]] void fail_to_write(const std::filesystem::path& path, size_t size, int error) {
  const auto free = free_bytes_at(path);
  const std::string room = free ? fmt::format(" ({} of its disk is free)", human_bytes(*free)) : "";
  fail(ErrorKind::kIo, "{}: cannot write {}: {}{}", path.string(), human_bytes(size),
       std::strerror(error), room);
}

}  // namespace

File::File(std::filesystem::path path, Mode mode) : path_(std::move(path)) {
  fd_ = ::open(path_.c_str(), flags_of(mode) | O_CLOEXEC, 0666);
  if (fd_ < 0) {
    fail(ErrorKind::kIo, "{}: cannot {}: {}", path_.string(),
         mode == Mode::kRead ? "open" : "create", std::strerror(errno));
  }
}

File::~File() { ::close(fd_); }

uint64_t File::size() const {
  struct stat info {};
  if (::fstat(fd_, &info) != 0) {
    fail(ErrorKind::kIo, "{}: {}", path_.string(), std::strerror(errno));
  }
  return static_cast<uint64_t>(info.st_size);
}

size_t File::read_some_at(uint64_t offset, void* data, size_t size) const {
  size_t done = 0;
  while (done < size) {
    const ssize_t n =
        ::pread(fd_, static_cast<char*>(data) + done, std::min(size - done, kWriteBytes),
                static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      fail(ErrorKind::kIo, "{}: cannot read at byte {}: {}", path_.string(), offset + done,
           std::strerror(errno));
    }
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  return done;
}

void File::read_at(uint64_t offset, void* data, size_t size) const {
  const size_t done = read_some_at(offset, data, size);
  if (done != size) {
    fail(ErrorKind::kIo, "{}: ends at byte {}, {} more were expected", path_.string(),
         offset + done, size - done);
  }
}

void File::write_at(uint64_t offset, const void* data, size_t size) {
  size_t done = 0;
  while (done < size) {
    const ssize_t n =
        ::pwrite(fd_, static_cast<const char*>(data) + done, std::min(size - done, kWriteBytes),
                 static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_to_write(path_, size - done, errno);
    if (n == 0) fail_to_write(path_, size - done, ENOSPC);
    done += static_cast<size_t>(n);
  }
}

void File::truncate(uint64_t size) {
  if (::ftruncate(fd_, static_cast<off_t>(size)) != 0) {
    fail(ErrorKind::kIo, "{}: cannot cut to {} bytes: {}", path_.string(), size,
         std::strerror(errno));
  }
}

void File::begin_sync(uint64_t offset, size_t size) const {
  // No more than a hint: sync() waits, and says what went wrong.
  ::sync_file_range(fd_, static_cast<off_t>(offset), static_cast<off_t>(size),
                    SYNC_FILE_RANGE_WRITE);
}

void File::sync() {
  // A descriptor without a disk below (a pipe, some network folders) has nothing to wait for.
  if (::fdatasync(fd_) != 0 && errno != EINVAL && errno != EROFS) {
    fail(ErrorKind::kIo, "{}: cannot put onto the disk: {}", path_.string(), std::strerror(errno));
  }
}

bool File::lock() const {
  if (::flock(fd_, LOCK_EX | LOCK_NB) == 0) return true;
  if (errno == EWOULDBLOCK) return false;
  fail(ErrorKind::kIo, "{}: cannot lock: {}", path_.string(), std::strerror(errno));
}

BufferedFile::BufferedFile(const std::filesystem::path& path) : file_(path, File::Mode::kCreate) {
  buffer_.reserve(kBufferBytes);
}

void BufferedFile::write(const void* data, size_t size) {
  if (buffer_.size() + size > kBufferBytes) flush();
  if (size > kBufferBytes) {
    write_through(data, size);
    return;
  }
  const auto* bytes = static_cast<const char*>(data);
  buffer_.insert(buffer_.end(), bytes, bytes + size);
}

void BufferedFile::flush() {
  write_through(buffer_.data(), buffer_.size());
  buffer_.clear();
}

// The disk begins with this while the next bytes are being made.
void BufferedFile::write_through(const void* data, size_t size) {
  file_.write_at(flushed_, data, size);
  file_.begin_sync(flushed_, size);
  flushed_ += size;
}

void BufferedFile::close() {
  flush();
  file_.sync();
}

void replace_file(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) {
    fail(ErrorKind::kIo, "{}: cannot rename to {}: {}", from.string(), to.string(),
         std::strerror(errno));
  }
  sync_folder_of(to);
}

void remove_if_there(const std::filesystem::path& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    fail(ErrorKind::kIo, "{}: cannot remove: {}", path.string(), std::strerror(errno));
  }
}

void sync_folder_of(const std::filesystem::path& path) {
  const auto folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;  // a folder that may be written but not read: the rename itself is done
  ::fsync(fd);
  ::close(fd);
}

std::optional<uint64_t> free_bytes_at(const std::filesystem::path& path) {
  const auto folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  struct statvfs info {};
  if (::statvfs(folder.c_str(), &info) != 0) return std::nullopt;
  return static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
}

std::filesystem::path with_suffix(const std::filesystem::path& path, std::string_view suffix) {
  std::filesystem::path result = path;
  result += suffix;
  return result;
}

}  // namespace quintet
