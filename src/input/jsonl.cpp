// JSONL: one object per line, {"id", "text"} or {"id", "input_ids", "attention_mask"?}. An id is a
// string or an integer; without one the line's number stands in. Blank lines are passed over, other
// keys ignored. A line that is none of this is a rejected record.
#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/json.h"
#include "input/formats.h"

namespace quintet {
namespace {

using nlohmann::json;

constexpr std::string_view kBlanks = " \t\v\f\r";

[[noreturn]] void reject(const std::string& reason) { throw Error(ErrorKind::kRecord, reason); }

bool is_int64(const json& value) {
  return value.is_number_integer() &&
         (!value.is_number_unsigned() ||
          value.get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()));
}

const json& array_at(const json& object, const char* key) {
  const json& array = object[key];
  if (!array.is_array()) reject(fmt::format("'{}' is {}, expected a list", key, array.type_name()));
  return array;
}

void read_id(const json& object, Record& record) {
  const auto found = object.find("id");
  if (found == object.end() || found->is_null()) return;
  std::string id;
  if (found->is_string()) {
    id = found->get<std::string>();
  } else if (found->is_number_integer()) {
    id = found->dump();
  } else {
    reject(fmt::format("'id' is {}, expected a string or an integer", found->type_name()));
  }
  if (id.empty()) reject("'id' is empty");
  if (id.find('\0') != std::string::npos) reject("'id' holds a NUL byte");
  record.id = std::move(id);
}

void read_ids(const json& object, Record& record) {
  for (const json& value : array_at(object, "input_ids")) {
    if (!is_int64(value)) {
      reject(fmt::format("'input_ids' holds {} at position {}, expected integers",
                         value.dump().substr(0, 40), record.input_ids.size()));
    }
    record.input_ids.push_back(value.get<int64_t>());
  }
  record.has_ids = true;
  if (record.input_ids.empty()) reject("'input_ids' is empty");
  if (!object.contains("attention_mask") || object["attention_mask"].is_null()) return;
  for (const json& value : array_at(object, "attention_mask")) {
    const bool bit = value.is_boolean() || (is_int64(value) && (value == 0 || value == 1));
    if (!bit) {
      reject(fmt::format("'attention_mask' holds {} at position {}, expected 0 or 1",
                         value.dump().substr(0, 40), record.attention_mask.size()));
    }
    record.attention_mask.push_back(value.is_boolean() ? (value.get<bool>() ? 1 : 0)
                                                       : static_cast<uint8_t>(value.get<int>()));
  }
  if (record.attention_mask.size() != record.input_ids.size()) {
    reject(fmt::format("'attention_mask' has {} entries for {} input_ids",
                       record.attention_mask.size(), record.input_ids.size()));
  }
}

void read_object(const json& object, Record& record) {
  if (!object.is_object()) reject(fmt::format("is {}, expected an object", object.type_name()));
  read_id(object, record);
  const bool has_text = object.contains("text");
  const bool has_ids = object.contains("input_ids");
  if (has_text == has_ids) {
    reject(has_text ? "has both 'text' and 'input_ids'" : "has neither 'text' nor 'input_ids'");
  }
  if (has_ids) {
    read_ids(object, record);
  } else if (object["text"].is_string()) {
    record.text = object["text"].get<std::string>();
  } else {
    reject(fmt::format("'text' is {}, expected a string", object["text"].type_name()));
  }
}

class JsonlReader final : public LineFormat {
 public:
  using LineFormat::LineFormat;
  InputFormat format() const override { return InputFormat::kJsonl; }

  bool next(Record& record) override {
    std::string_view line;
    do {
      if (!lines().next(line)) return false;
    } while (line.find_first_not_of(kBlanks) == std::string_view::npos);
    record = fresh(lines().line_number());
    record.id = std::to_string(record.line);
    try {
      read_object(parse_json(line, "", {.max_bytes = std::numeric_limits<size_t>::max()}), record);
    } catch (const Error& error) {
      record.rejected = error.what();
    }
    return true;
  }
};

}  // namespace

std::unique_ptr<Reader> make_jsonl_reader(std::unique_ptr<LineReader> lines) {
  return std::make_unique<JsonlReader>(std::move(lines));
}

}  // namespace quintet
