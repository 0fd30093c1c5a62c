#include "engine/tokenize.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "engine/named_files.h"
#include "output/paths.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/traced_text.h"

namespace quintet {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 16;

// `text` as a string of JSON; what is not UTF-8 in it becomes U+FFFD.
void append_string(std::string_view text, std::string& out) {
  const bool as_it_is = std::all_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\';
  });
  if (as_it_is && is_valid_utf8(text)) {
    out.append("\"").append(text).append("\"");
  } else {
    using nlohmann::json;
    out += json(text).dump(-1, ' ', false, json::error_handler_t::replace);
  }
}

// Text to a file or to standard output, through a small buffer; a failed write is an error, not a
// silence.
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

  // To append to: write_full() is to be called now and then.
  std::string& buffer() { return buffer_; }
  void write_full() {
    if (buffer_.size() >= kBufferBytes) write();
  }

  void close() {
    write();
    if (std::fflush(file_.get()) != 0) failed();
  }

 private:
  void write() {
    if (std::fwrite(buffer_.data(), 1, buffer_.size(), file_.get()) != buffer_.size()) failed();
    buffer_.clear();
  }
  [[noreturn]] void failed() const {
    fail(ErrorKind::kIo, "{}: cannot write: {}", name_ == "-" ? "standard output" : name_,
         std::strerror(errno));
  }

  std::string name_;
  std::unique_ptr<FILE, int (*)(FILE*)> file_;
  std::string buffer_;
};

// "key":[...] with `append` for each item.
template <typename Items, typename Append>
void write_list(std::string_view key, const Items& items, Lines& lines, Append append) {
  std::string& out = lines.buffer();
  out.append(",\"").append(key).append("\":[");
  bool is_first = true;
  for (const auto& item : items) {
    if (!is_first) out += ',';
    is_first = false;
    append(item, out);
    lines.write_full();
  }
  out += ']';
}

void write_tokens(const std::vector<Token>& tokens, Lines& lines) {
  write_list("input_ids", tokens, lines,
             [](const Token& token, std::string& out) { out += std::to_string(token.id); });
  write_list("pieces", tokens, lines,
             [](const Token& token, std::string& out) { append_string(token.piece, out); });
  if (tokens.empty()) return;
  write_list("offsets", tokens, lines, [](const Token& token, std::string& out) {
    fmt::format_to(std::back_inserter(out), "[{},{}]", token.begin, token.end);
  });
}

void write_ids(const std::vector<int32_t>& ids, const Tokenizer& tokenizer, Lines& lines) {
  write_list("input_ids", ids, lines,
             [](int32_t id, std::string& out) { out += std::to_string(id); });
  write_list("pieces", ids, lines,
             [&](int32_t id, std::string& out) { append_string(tokenizer.piece(id), out); });
}

}  // namespace

TokenizeResult run_tokenize(const Options& options) {
  if (options.input.empty()) fail(ErrorKind::kUsage, "--input is missing: a file, or - for stdin");
  check_named_files(options);
  if (!options.output.empty() && options.output != "-") check_writable(options.output, "--output");
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
    std::string& out = lines.buffer();
    out += "{\"id\":";
    append_string(record.id, out);
    std::string problem = record.rejected;
    if (problem.empty() && plain_text && !record.has_ids) {
      write_tokens(tokenizer->encode_tokens(record.text, true), lines);
    } else if (problem.empty()) {
      const EncodedRecord encoded = encoder.encode(record);
      problem = encoded.rejected;
      if (problem.empty()) write_ids(encoded.sequence.tokens, *tokenizer, lines);
    }
    if (!problem.empty()) {
      out += ",\"error\":";
      append_string(problem, out);
      ++result.failed;
    }
    out += "}\n";
    lines.write_full();
  }
  lines.close();
  if (result.records == 0) fail(ErrorKind::kUsage, "{}: no records", options.input);
  result.notes = encoder.notes();
  return result;
}

}  // namespace quintet
