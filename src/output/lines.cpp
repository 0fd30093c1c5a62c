// Lines of text, one record's after the other's, as the job made them: JSON objects with an "id".
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>

#include "core/error.h"
#include "core/json.h"
#include "output/formats.h"

namespace quintet {
namespace {

using nlohmann::json;

std::ifstream open_lines(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(ErrorKind::kIo, "{}: cannot open", path.string());
  return file;
}

json parse_line(const std::string& line, const std::string& where) {
  json object = parse_json(line, where, {.max_bytes = std::numeric_limits<size_t>::max()});
  if (!object.is_object() || !object.contains("id") || !object["id"].is_string()) {
    fail(ErrorKind::kFile, "{}: expected {{\"id\": \"...\", ...}}", where);
  }
  return object;
}

}  // namespace

void write_lines(const Spool& spool, const OutputOptions& /*options*/,
                 const std::filesystem::path& path) {
  BufferedFile file(path);
  std::vector<std::byte> payload;
  spool.each([&](const Frame& frame) {
    if (frame.kind == FrameKind::kRejected) return;
    spool.read_payload(frame, payload);
    file.write(payload.data(), payload.size());
  });
  file.close();
}

FileShape inspect_lines(const std::filesystem::path& path) {
  FileShape shape;
  shape.values = {.dtype = DType::kUInt8, .pooled = false, .d_model = 1};  // a byte is a row
  shape.empty = open_lines(path).peek() == std::ifstream::traits_type::eof();
  if (!shape.empty && !begins_with_lines(path)) {
    fail(ErrorKind::kUsage, "{}: holds embeddings, and others of the files do not", path.string());
  }
  return shape;
}

// A record's lines stand one after the other.
void read_lines(const std::filesystem::path& path, const RecordSink& sink) {
  std::ifstream file = open_lines(path);
  Frame frame;
  std::vector<std::byte> payload;
  const auto hand_on = [&] {
    frame.n_rows = payload.size();
    if (!payload.empty()) sink(frame, payload);
    payload.clear();
  };
  std::string line;
  for (uint64_t number = 1; std::getline(file, line); ++number) {
    const json object = parse_line(line, fmt::format("{}:{}", path.string(), number));
    const auto& id = object["id"].get_ref<const std::string&>();
    if (id != frame.id) hand_on();
    frame.id = id;
    line += '\n';
    const auto bytes = std::as_bytes(std::span(line));
    payload.insert(payload.end(), bytes.begin(), bytes.end());
  }
  if (file.bad()) fail(ErrorKind::kIo, "{}: cannot read", path.string());
  hand_on();
}

bool begins_with_lines(const std::filesystem::path& path) {
  std::ifstream file = open_lines(path);
  std::string line;
  if (!std::getline(file, line)) return false;
  return !parse_line(line, path.string() + ":1").contains("embedding");
}

}  // namespace quintet
