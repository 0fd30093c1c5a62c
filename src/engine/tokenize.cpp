#include "engine/tokenize.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.h"
#include "output/paths.h"

namespace quintet {
namespace {

using nlohmann::ordered_json;

// Lines to a file or to standard output; a failed write is an error, not a silence.
class Lines {
 public:
  explicit Lines(const Options& options)
      : name_(options.output.empty() ? "-" : options.output),
        file_(stdout, [](FILE*) { return 0; }) {
    if (name_ == "-") return;
    if (!options.overwrite && std::filesystem::exists(name_)) {
      fail(ErrorKind::kUsage, "{} exists; --overwrite replaces it", name_);
    }
    file_ = {std::fopen(name_.c_str(), "w"), std::fclose};
    if (file_ == nullptr) {
      fail(ErrorKind::kIo, "{}: cannot write: {}", name_, std::strerror(errno));
    }
  }

  void write(const ordered_json& value) {
    const std::string line =
        value.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
    if (std::fwrite(line.data(), 1, line.size(), file_.get()) != line.size()) failed();
  }

  void close() {
    if (std::fflush(file_.get()) != 0) failed();
  }

 private:
  [[noreturn]] void failed() const {
    fail(ErrorKind::kIo, "{}: cannot write: {}", name_ == "-" ? "standard output" : name_,
         std::strerror(errno));
  }

  std::string name_;
  std::unique_ptr<FILE, int (*)(FILE*)> file_;
};

}  // namespace

TokenizeResult run_tokenize(const Options& options) {
  if (options.input.empty()) fail(ErrorKind::kUsage, "--input is missing: a file, or - for stdin");
  check_no_clash({{"--output", options.output},
                  {"--input", options.input, true},
                  {"--model", options.model, true}});
  const auto reader = open_reader(options.input, options.input_format);
  const auto tokenizer = load_tokenizer(options.model);
  RecordEncoder encoder(options, reader->format(), tokenizer->vocab_size());
  const bool plain_text = encoder.reading() == "text" && options.max_tokens == 0;
  Lines lines(options);
  TokenizeResult result;
  Record record;
  while (reader->next(record)) {
    ++result.records;
    ordered_json line;
    line["id"] = record.id;
    std::string problem = record.rejected;
    ordered_json pieces = ordered_json::array();
    ordered_json ids = ordered_json::array();
    ordered_json offsets = ordered_json::array();
    if (problem.empty() && plain_text && !record.has_ids) {
      for (const Token& token : tokenizer->encode_tokens(record.text, true)) {
        ids.push_back(token.id);
        pieces.push_back(token.piece);
        offsets.push_back({token.begin, token.end});
      }
    } else if (problem.empty()) {
      const EncodedRecord encoded = encoder.encode(record);
      problem = encoded.rejected;
      for (const int32_t id : encoded.sequence.tokens) {
        ids.push_back(id);
        pieces.push_back(tokenizer->piece(id));
      }
    }
    if (problem.empty()) {
      line["input_ids"] = std::move(ids);
      line["pieces"] = std::move(pieces);
      if (!offsets.empty()) line["offsets"] = std::move(offsets);
    } else {
      line["error"] = problem;
      ++result.failed;
    }
    lines.write(line);
  }
  lines.close();
  if (result.records == 0) fail(ErrorKind::kUsage, "{}: no records", options.input);
  result.notes = encoder.notes();
  return result;
}

}  // namespace quintet
