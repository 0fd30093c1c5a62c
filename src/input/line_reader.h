// Lines of a byte source, of any length. A line ends with LF or CRLF; where asked for also with a
// lone CR. A byte order mark at the start is dropped.
#ifndef QUINTET_INPUT_LINE_READER_H_
#define QUINTET_INPUT_LINE_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "input/byte_source.h"

namespace quintet {

class LineReader {
 public:
  // Throws Error(kFile) where the input is UTF-16.
  LineReader(std::unique_ptr<ByteSource> source, std::string name);

  void end_lines_at_cr() { cr_ends_line_ = true; }
  // False at the end. `line` comes without its end and lasts until the next call.
  bool next(std::string_view& line);
  // The first byte that is no white space, without consuming anything (looks no further than a
  // buffer's length).
  std::optional<char> first_byte();

  uint64_t line_number() const { return line_number_; }  // of the last line, counted from 1
  const std::string& name() const { return name_; }
  const ByteSource& source() const { return *source_; }

 private:
  bool refill();
  // Position of the end of the line that starts at begin_, npos where it is not in the buffer yet.
  size_t find_end();

  std::unique_ptr<ByteSource> source_;
  std::string name_;
  std::vector<char> buffer_;
  size_t begin_ = 0;    // of what has not been handed out
  size_t scanned_ = 0;  // no line ends in [begin_, scanned_)
  size_t end_ = 0;
  bool at_end_ = false;
  bool cr_ends_line_ = false;
  uint64_t line_number_ = 0;
};

}  // namespace quintet

#endif  // QUINTET_INPUT_LINE_READER_H_
