#include "input/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "core/error.h"

namespace quintet {
namespace {

constexpr size_t kReadBytes = size_t{1} << 20;
constexpr int kGzipWindow = 15 + 16;  // zlib's way to say: gzip, the largest window

class FileSource final : public ByteSource {
 public:
  explicit FileSource(const std::string& path) : name_(path == "-" ? "stdin" : path) {
    fd_ = path == "-" ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd_ < 0) fail(ErrorKind::kIo, "{}: cannot open: {}", name_, std::strerror(errno));
    struct stat info = {};
    const bool known = ::fstat(fd_, &info) == 0;
    if (known && S_ISDIR(info.st_mode)) {
      close();
      fail(ErrorKind::kIo, "{}: is a folder, expected a file", name_);
    }
    if (known && S_ISREG(info.st_mode)) total_ = static_cast<uint64_t>(info.st_size);
    ::posix_fadvise(fd_, 0, 0, POSIX_FADV_SEQUENTIAL);
  }
  ~FileSource() override { close(); }
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;

  size_t read(char* data, size_t size) override {
    for (;;) {
      const ssize_t n = ::read(fd_, data, size);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) {
        fail(ErrorKind::kIo, "{}: cannot read at byte {}: {}", name_, read_, std::strerror(errno));
      }
      read_ += static_cast<uint64_t>(n);
      return static_cast<size_t>(n);
    }
  }
  uint64_t bytes_read() const override { return read_; }
  uint64_t bytes_total() const override { return total_; }

 private:
  void close() const {
    if (fd_ != STDIN_FILENO) ::close(fd_);
  }

  std::string name_;
  int fd_ = -1;
  uint64_t read_ = 0;
  uint64_t total_ = 0;
};

class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(std::string bytes) : bytes_(std::move(bytes)) {}
  size_t read(char* data, size_t size) override {
    const size_t n = std::min(size, bytes_.size() - at_);
    std::memcpy(data, bytes_.data() + at_, n);
    at_ += n;
    return n;
  }
  uint64_t bytes_read() const override { return at_; }
  uint64_t bytes_total() const override { return bytes_.size(); }

 private:
  std::string bytes_;
  size_t at_ = 0;
};

// Passes plain bytes on and unpacks gzip.
class UnpackedSource final : public ByteSource {
 public:
  UnpackedSource(std::unique_ptr<ByteSource> packed, std::string name)
      : packed_(std::move(packed)), name_(std::move(name)), buffer_(kReadBytes) {
    while (left() < 2 && refill()) {
    }
    gzip_ = at_magic();
    if (gzip_ && inflateInit2(&stream_, kGzipWindow) != Z_OK) {
      fail(ErrorKind::kMemory, "{}: no memory to unpack gzip", name_);
    }
  }
  ~UnpackedSource() override {
    if (gzip_) inflateEnd(&stream_);
  }
  UnpackedSource(const UnpackedSource&) = delete;
  UnpackedSource& operator=(const UnpackedSource&) = delete;

  size_t read(char* data, size_t size) override {
    if (size == 0) return 0;
    if (gzip_) return inflate_some(data, size);
    if (left() == 0) return packed_->read(data, size);
    const size_t n = std::min(size, left());
    std::memcpy(data, buffer_.data() + begin_, n);
    begin_ += n;
    return n;
  }
  uint64_t bytes_read() const override { return packed_->bytes_read() - left(); }
  uint64_t bytes_total() const override { return packed_->bytes_total(); }

 private:
  size_t left() const { return end_ - begin_; }

  bool at_magic() const {
    return left() >= 2 && buffer_[begin_] == '\x1f' && buffer_[begin_ + 1] == '\x8b';
  }

  // More packed bytes behind those that are left; false at the end.
  bool refill() {
    std::memmove(buffer_.data(), buffer_.data() + begin_, left());
    end_ -= begin_;
    begin_ = 0;
    const size_t n = packed_->read(buffer_.data() + end_, buffer_.size() - end_);
    end_ += n;
    return n > 0;
  }

  size_t inflate_some(char* data, size_t size) {
    stream_.next_out = reinterpret_cast<Bytef*>(data);
    const auto room = static_cast<uInt>(std::min<size_t>(size, kReadBytes));
    stream_.avail_out = room;
    while (stream_.avail_out == room) {
      if (between_members_ && !next_member()) return 0;
      if (left() == 0 && !refill()) {
        fail(ErrorKind::kFile,
             "{}: gzip ends at byte {} in the middle of its data; the file is cut", name_,
             bytes_read());
      }
      stream_.next_in = reinterpret_cast<Bytef*>(buffer_.data() + begin_);
      stream_.avail_in = static_cast<uInt>(left());
      const int status = inflate(&stream_, Z_NO_FLUSH);
      begin_ = end_ - stream_.avail_in;
      if (status == Z_STREAM_END) {
        between_members_ = true;
      } else if (status != Z_OK && status != Z_BUF_ERROR) {
        fail(ErrorKind::kFile, "{}: broken gzip at byte {}: {}", name_, bytes_read(),
             stream_.msg != nullptr ? stream_.msg : "not what gzip writes");
      }
    }
    return room - stream_.avail_out;
  }

  // Gets ready for the member that follows; false at the end, which zeros may pad.
  bool next_member() {
    while (left() < 2 && refill()) {
    }
    if (at_magic()) {
      inflateReset(&stream_);
      between_members_ = false;
      return true;
    }
    do {
      for (; begin_ < end_; ++begin_) {
        if (buffer_[begin_] == 0) continue;
        fail(ErrorKind::kFile, "{}: byte {} behind the gzip data is neither gzip nor padding",
             name_, bytes_read());
      }
    } while (refill());
    return false;
  }

  std::unique_ptr<ByteSource> packed_;
  std::string name_;
  std::vector<char> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
  bool gzip_ = false;
  bool between_members_ = false;
  z_stream stream_{};
};

}  // namespace

std::unique_ptr<ByteSource> open_file(const std::string& path) {
  return std::make_unique<FileSource>(path);
}

std::unique_ptr<ByteSource> from_memory(std::string bytes) {
  return std::make_unique<MemorySource>(std::move(bytes));
}

std::unique_ptr<ByteSource> unpack_gzip(std::unique_ptr<ByteSource> packed, std::string name) {
  return std::make_unique<UnpackedSource>(std::move(packed), std::move(name));
}

}  // namespace quintet
