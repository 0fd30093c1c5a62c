// FASTA. The id is the first word of the header; sequence lines are joined without white space and
// otherwise left as they are. A line that starts with ';' is a comment.
#include "core/error.h"
#include "input/formats.h"

namespace quintet {
namespace {

constexpr std::string_view kBlanks = " \t\v\f\r";

std::string_view first_word(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_first_of(kBlanks, begin) - begin);
}

void append_without_blanks(std::string_view line, std::string& text) {
  while (!line.empty()) {
    const size_t blank = std::min(line.find_first_of(kBlanks), line.size());
    text += line.substr(0, blank);
    line.remove_prefix(std::min(blank + 1, line.size()));
  }
}

class FastaReader final : public LineFormat {
 public:
  explicit FastaReader(std::unique_ptr<LineReader> source) : LineFormat(std::move(source)) {
    lines().end_lines_at_cr();
  }

  InputFormat format() const override { return InputFormat::kFasta; }

  bool next(Record& record) override {
    if (!has_header_ && !find_header()) return false;
    record = fresh(header_line_);
    record.id = std::move(header_id_);
    has_header_ = false;
    std::string_view line;
    while (!has_header_ && lines().next(line)) {
      if (line.starts_with('>')) {
        keep_header(line);
      } else if (!line.starts_with(';')) {
        append_without_blanks(line, record.text);
      }
    }
    if (record.id.empty()) {
      record.rejected = "the header has no id";
    } else if (record.text.empty()) {
      record.rejected = "no residues";
      record.empty = true;
    } else if (record.text.find('\0') != std::string::npos ||
               record.id.find('\0') != std::string::npos) {
      record.rejected = "holds a NUL byte";
    }
    return true;
  }

 private:
  void keep_header(std::string_view line) {
    header_id_ = valid_utf8(first_word(line.substr(1)));
    header_line_ = lines().line_number();
    has_header_ = true;
  }

  // The first header; only blank lines and comments may stand before it.
  bool find_header() {
    std::string_view line;
    while (lines().next(line)) {
      if (line.starts_with('>')) {
        keep_header(line);
        return true;
      }
      if (line.starts_with(';') || line.find_first_not_of(kBlanks) == std::string_view::npos) {
        continue;
      }
      fail(ErrorKind::kFile,
           "{}:{}: expected a FASTA header that starts with '>', found '{}'; --input-format text "
           "takes one sequence per line",
           lines().name(), lines().line_number(), valid_utf8(line.substr(0, 40)));
    }
    return false;
  }

  std::string header_id_;
  uint64_t header_line_ = 0;
  bool has_header_ = false;
};

}  // namespace

std::unique_ptr<Reader> make_fasta_reader(std::unique_ptr<LineReader> lines,
                                          RecordFields /*fields*/) {
  return std::make_unique<FastaReader>(std::move(lines));
}

}  // namespace quintet
