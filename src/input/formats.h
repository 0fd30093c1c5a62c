// The input formats behind open_reader(), each a Reader over lines; registry.cpp lists them.
#ifndef QUINTET_INPUT_FORMATS_H_
#define QUINTET_INPUT_FORMATS_H_

#include <memory>
#include <string>
#include <string_view>

#include "input/line_reader.h"
#include "input/reader.h"

namespace quintet {

// What all formats share: the source, its progress, the count of records.
class LineFormat : public Reader {
 public:
  explicit LineFormat(std::unique_ptr<LineReader> lines) : lines_(std::move(lines)) {}
  uint64_t bytes_read() const override { return lines_->source().bytes_read(); }
  uint64_t bytes_total() const override { return lines_->source().bytes_total(); }

 protected:
  // An empty record with the next ordinal.
  Record fresh(uint64_t line) {
    Record record;
    record.ordinal = next_ordinal_++;
    record.line = line;
    return record;
  }
  LineReader& lines() { return *lines_; }

 private:
  std::unique_ptr<LineReader> lines_;
  uint64_t next_ordinal_ = 0;
};

std::unique_ptr<Reader> make_fasta_reader(std::unique_ptr<LineReader> lines, RecordFields fields);
std::unique_ptr<Reader> make_text_reader(std::unique_ptr<LineReader> lines, RecordFields fields);
std::unique_ptr<Reader> make_jsonl_reader(std::unique_ptr<LineReader> lines, RecordFields fields);

// As open_reader(), from any source; `name` stands in messages and gives the extension.
std::unique_ptr<Reader> make_reader(std::unique_ptr<ByteSource> source, const std::string& name,
                                    InputFormat format,
                                    RecordFields fields = RecordFields::kSource);

// Invalid UTF-8 replaced by U+FFFD, so that an id can stand in any output format.
std::string valid_utf8(std::string_view bytes);

}  // namespace quintet

#endif  // QUINTET_INPUT_FORMATS_H_
