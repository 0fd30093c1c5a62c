// The input formats, a line for each, and how one is told from another.
#include <array>
#include <filesystem>
#include <vector>

#include "core/error.h"
#include "input/formats.h"

namespace quintet {
namespace {

struct Format {
  InputFormat format;
  std::unique_ptr<Reader> (*make)(std::unique_ptr<LineReader> lines, RecordFields fields);
  std::vector<std::string_view> extensions;
  std::string_view first_bytes;  // a file of another extension is of this format: none, all others
};

const std::vector<Format>& formats() {
  static const std::vector<Format> kFormats = {
      {InputFormat::kFasta,
       make_fasta_reader,
       {".fasta", ".fa", ".faa", ".fas", ".fna", ".ffn", ".pep"},
       ">;"},
      {InputFormat::kJsonl, make_jsonl_reader, {".jsonl", ".ndjson"}, "{"},
      {InputFormat::kText, make_text_reader, {".txt", ".text"}, ""},
  };
  return kFormats;
}

const Format& choose(const std::string& name, InputFormat asked, LineReader& lines) {
  std::string lower_case(name);
  for (char& c : lower_case) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  std::filesystem::path path(lower_case);
  if (path.extension() == ".gz") path = path.stem();
  const std::string extension = path.extension().string();
  for (const Format& entry : formats()) {
    if (asked == entry.format) return entry;
    if (asked != InputFormat::kAuto) continue;
    for (const auto known : entry.extensions) {
      if (extension == known) return entry;
    }
  }
  const auto first = lines.first_byte();
  for (const Format& entry : formats()) {
    if (first && entry.first_bytes.find(*first) != std::string_view::npos) return entry;
  }
  return formats().back();
}

}  // namespace

std::unique_ptr<Reader> make_reader(std::unique_ptr<ByteSource> source, const std::string& name,
                                    InputFormat format, RecordFields fields) {
  auto lines = std::make_unique<LineReader>(unpack_gzip(std::move(source), name), name);
  const Format& chosen = choose(name, format, *lines);
  return chosen.make(std::move(lines), fields);
}

std::unique_ptr<Reader> open_reader(const std::string& path, InputFormat format,
                                    RecordFields fields) {
  return make_reader(open_file(path), path == "-" ? "stdin" : path, format, fields);
}

InputFormat input_format_from_name(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, InputFormat>, 4> kNames{{
      {"auto", InputFormat::kAuto},
      {"fasta", InputFormat::kFasta},
      {"text", InputFormat::kText},
      {"jsonl", InputFormat::kJsonl},
  }};
  for (const auto& [text, format] : kNames) {
    if (text == name) return format;
  }
  fail(ErrorKind::kUsage, "--input-format {}: expected auto, fasta, text or jsonl", name);
}

}  // namespace quintet
