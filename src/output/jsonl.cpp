// One JSON object per line: {"id": "...", "embedding": [...]}, a list of lists where not pooled.
// Numbers are the shortest decimals that give the same float32 back; NaN and infinities are null.
#include <charconv>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/json.h"
#include "output/formats.h"

namespace quintet {
namespace {

using nlohmann::json;

constexpr size_t kNumberBytes = 24;  // more than any float32 in shortest form

void append_row(const float* values, size_t n, std::string& line) {
  line += '[';
  for (size_t i = 0; i < n; ++i) {
    if (i > 0) line += ", ";
    if (!std::isfinite(values[i])) {
      line += "null";
      continue;
    }
    char number[kNumberBytes];
    const auto end = std::to_chars(number, number + kNumberBytes, values[i]);
    line.append(number, end.ptr);
  }
  line += ']';
}

void append_values(const json& row, const std::string& where, std::vector<float>& values) {
  for (const auto& value : row) {
    if (value.is_null()) {
      values.push_back(std::numeric_limits<float>::quiet_NaN());
    } else if (value.is_number()) {
      values.push_back(value.get<float>());
    } else {
      fail(ErrorKind::kFile, "{}: 'embedding' holds {}, not a number", where, value.type_name());
    }
  }
}

// Calls `use(id, embedding, where)` for each line.
template <typename Use>
void each_line(const std::filesystem::path& path, const Use& use) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(ErrorKind::kIo, "{}: cannot open", path.string());
  std::string line;
  for (uint64_t number = 1; std::getline(file, line); ++number) {
    const std::string where = fmt::format("{}:{}", path.string(), number);
    const json object = parse_json(line, where, {.max_bytes = std::numeric_limits<size_t>::max()});
    if (!object.is_object() || !object.contains("id") || !object["id"].is_string() ||
        !object.contains("embedding") || !object["embedding"].is_array()) {
      fail(ErrorKind::kFile, "{}: expected {{\"id\": \"...\", \"embedding\": [...]}}", where);
    }
    if (!use(object["id"].get_ref<const std::string&>(), object["embedding"], where)) return;
  }
  if (file.bad()) fail(ErrorKind::kIo, "{}: cannot read", path.string());
}

}  // namespace

std::string jsonl_line(std::string_view id, const SpoolShape& shape, uint64_t n_rows,
                       const std::byte* values) {
  const auto width = static_cast<size_t>(shape.d_model);
  std::vector<float> row(width);
  std::string line = "{\"id\": ";
  line += json(std::string(id)).dump(-1, ' ', false, json::error_handler_t::replace);
  line += ", \"embedding\": ";
  if (!shape.pooled) line += '[';
  for (uint64_t i = 0; i < n_rows; ++i) {
    if (i > 0) line += ", ";
    widen(values + i * width * size_of(shape.dtype), shape.dtype, width, row.data());
    append_row(row.data(), width, line);
  }
  if (!shape.pooled) line += ']';
  line += "}\n";
  return line;
}

void write_jsonl(const Spool& spool, const OutputOptions& /*options*/,
                 const std::filesystem::path& path) {
  BufferedFile file(path);
  std::vector<std::byte> payload;
  spool.each([&](const Frame& frame) {
    if (frame.kind == FrameKind::kRejected) return;
    spool.read_payload(frame, payload);
    file.write(jsonl_line(frame.id, spool.shape(), frame.n_rows, payload.data()));
  });
  file.close();
}

FileShape inspect_jsonl(const std::filesystem::path& path) {
  FileShape shape;
  shape.empty = true;
  each_line(path, [&](const std::string&, const json& embedding, const std::string&) {
    shape.values.pooled = embedding.empty() || !embedding[0].is_array();
    const json& row = shape.values.pooled ? embedding : embedding[0];
    shape.values.d_model = static_cast<int64_t>(row.size());
    shape.empty = row.empty();  // a record without rows does not tell the width
    return shape.empty;
  });
  return shape;
}

void read_jsonl(const std::filesystem::path& path, const RecordSink& sink) {
  const SpoolShape shape = inspect_jsonl(path).values;
  std::vector<float> values;
  std::vector<std::byte> payload;
  each_line(path, [&](const std::string& id, const json& embedding, const std::string& where) {
    values.clear();
    const bool pooled = !embedding.empty() && !embedding[0].is_array();
    if (pooled) {
      append_values(embedding, where, values);
    } else {
      for (const auto& row : embedding) {
        append_values(row, where, values);
      }
    }
    const auto width = static_cast<size_t>(shape.d_model);
    Frame frame;
    frame.id = id;
    frame.n_rows = pooled ? 1 : embedding.size();
    if (values.size() != frame.n_rows * width) {
      fail(ErrorKind::kFile, "{}: {} numbers in {} rows, {} in each were expected", where,
           values.size(), frame.n_rows, width);
    }
    payload.resize(values.size() * sizeof(float));
    narrow(values.data(), values.size(), DType::kFloat32, payload.data());
    sink(frame, payload);
    return true;
  });
}

}  // namespace quintet
