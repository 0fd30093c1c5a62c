// Text: every line is a record, its number the id, counted from 1. An empty line is an empty text.
#include "input/formats.h"

namespace quintet {
namespace {

class TextReader final : public LineFormat {
 public:
  using LineFormat::LineFormat;
  InputFormat format() const override { return InputFormat::kText; }

  bool next(Record& record) override {
    std::string_view line;
    if (!lines().next(line)) return false;
    record = fresh(lines().line_number());
    record.id = std::to_string(record.line);
    record.text = line;
    return true;
  }
};

}  // namespace

std::unique_ptr<Reader> make_text_reader(std::unique_ptr<LineReader> lines,
                                         RecordFields /*fields*/) {
  return std::make_unique<TextReader>(std::move(lines));
}

}  // namespace quintet
