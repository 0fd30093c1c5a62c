// Records in order, from FASTA, text lines or JSONL; plain or gzip by content; a file or stdin.
#ifndef QUINTET_INPUT_READER_H_
#define QUINTET_INPUT_READER_H_

#include <memory>
#include <string>
#include <string_view>

#include "core/record.h"

namespace quintet {

enum class InputFormat { kAuto, kFasta, kText, kJsonl };

// Which of a JSONL object's keys are read: all else is ignored, whatever stands there.
enum class RecordFields {
  kSource,           // id, text, input_ids, attention_mask
  kSourceAndTarget,  // and decoder_input_ids, labels, target, position_ids
};

class Reader {
 public:
  virtual ~Reader() = default;
  // False at the end. A record that cannot be used comes with `rejected` set; a broken file (no
  // FASTA header, bad gzip) throws Error(kFile) with the line.
  virtual bool next(Record& record) = 0;
  virtual InputFormat format() const = 0;  // never kAuto
  // Bytes of the file consumed so far (compressed) and its size, for the progress bar; size 0:
  // unknown (stdin).
  virtual uint64_t bytes_read() const = 0;
  virtual uint64_t bytes_total() const = 0;
};

// `path` "-" is stdin. kAuto goes by the extension (below a .gz), then by the first byte: '>' and
// ';' FASTA, '{' JSONL, all else text.
std::unique_ptr<Reader> open_reader(const std::string& path, InputFormat format,
                                    RecordFields fields = RecordFields::kSource);

InputFormat input_format_from_name(std::string_view name);  // throws Error(kUsage)

}  // namespace quintet

#endif  // QUINTET_INPUT_READER_H_
