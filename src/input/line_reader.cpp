#include "input/line_reader.h"

#include <cstring>
#include <utility>

#include "core/error.h"

namespace quintet {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;
constexpr size_t kNone = static_cast<size_t>(-1);

}  // namespace

LineReader::LineReader(std::unique_ptr<ByteSource> source, std::string name)
    : source_(std::move(source)), name_(std::move(name)), buffer_(kBufferBytes) {
  while (end_ < 3 && refill()) {
  }
  const std::string_view start(buffer_.data(), end_);
  if (start.starts_with("\xEF\xBB\xBF")) begin_ = scanned_ = 3;
  if (start.starts_with("\xFF\xFE") || start.starts_with("\xFE\xFF")) {
    fail(ErrorKind::kFile, "{}: is UTF-16; convert it to UTF-8", name_);
  }
}

bool LineReader::refill() {
  if (at_end_) return false;
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    scanned_ -= begin_;
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ == buffer_.size()) buffer_.resize(2 * buffer_.size());
  const size_t n = source_->read(buffer_.data() + end_, buffer_.size() - end_);
  end_ += n;
  at_end_ = n == 0;
  return !at_end_;
}

size_t LineReader::find_end() {
  const char* from = buffer_.data() + scanned_;
  size_t length = end_ - scanned_;
  const void* lf = std::memchr(from, '\n', length);
  if (lf != nullptr) length = static_cast<size_t>(static_cast<const char*>(lf) - from);
  const void* cr = cr_ends_line_ ? std::memchr(from, '\r', length) : nullptr;
  const void* found = cr != nullptr ? cr : lf;
  if (found == nullptr) {
    scanned_ = end_;
    return kNone;
  }
  return static_cast<size_t>(static_cast<const char*>(found) - buffer_.data());
}

bool LineReader::next(std::string_view& line) {
  size_t stop = find_end();
  while (stop == kNone && refill()) stop = find_end();
  if (stop == kNone && begin_ == end_) return false;
  size_t next = stop == kNone ? end_ : stop + 1;
  if (stop == kNone) {
    stop = end_;
  } else if (buffer_[stop] == '\r') {  // with its LF, which may not have been read yet
    if (next == end_) {
      const size_t length = stop - begin_;
      refill();
      stop = begin_ + length;
      next = stop + 1;
    }
    if (next < end_ && buffer_[next] == '\n') ++next;
  }
  line = std::string_view(buffer_.data() + begin_, stop - begin_);
  if (line.ends_with('\r')) line.remove_suffix(1);
  begin_ = scanned_ = next;
  ++line_number_;
  return true;
}

std::optional<char> LineReader::first_byte() {
  for (size_t i = begin_;; ++i) {
    if (i == end_) {
      const size_t ahead = i - begin_;
      if (ahead >= kBufferBytes || !refill()) return std::nullopt;
      i = begin_ + ahead;
    }
    if (std::strchr(" \t\r\n\v\f", buffer_[i]) == nullptr || buffer_[i] == '\0') return buffer_[i];
  }
}

}  // namespace quintet
