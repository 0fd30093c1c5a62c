// JSONL: one object per line, {"id", "text"} or {"id", "input_ids", "attention_mask"?}, and where
// targets are asked for "decoder_input_ids"?, "labels"? or "target"?, "position_ids"?. An id is a
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

bool is_given(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && !found->is_null();
}

// A list of integers, at least one, for each of which `accept` holds.
template <typename Accept>
std::vector<int64_t> read_integers(const json& object, const char* key, const char* expected,
                                   Accept accept) {
  std::vector<int64_t> values;
  for (const json& value : array_at(object, key)) {
    if (!is_int64(value) || !accept(value.get<int64_t>())) {
      reject(fmt::format("'{}' holds {} at position {}, expected {}", key,
                         value.dump().substr(0, 40), values.size(), expected));
    }
    values.push_back(value.get<int64_t>());
  }
  if (values.empty()) reject(fmt::format("'{}' is empty", key));
  return values;
}

std::string read_text(const json& object, const char* key) {
  const json& value = object[key];
  if (!value.is_string()) {
    reject(fmt::format("'{}' is {}, expected a string", key, value.type_name()));
  }
  return value.get<std::string>();
}

void read_ids(const json& object, Record& record) {
  record.has_ids = true;
  record.input_ids =
      read_integers(object, "input_ids", "integers", [](int64_t /*any*/) { return true; });
  if (!is_given(object, "attention_mask")) return;
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

void read_target(const json& object, Record& record) {
  const auto any = [](int64_t /*id*/) { return true; };
  if (is_given(object, "decoder_input_ids")) {
    record.decoder_input_ids = read_integers(object, "decoder_input_ids", "integers", any);
  }
  if (is_given(object, "labels") && is_given(object, "target")) {
    reject("has both 'labels' and 'target'");
  }
  if (is_given(object, "labels")) {
    record.labels = read_integers(object, "labels", "token ids of 0 or more, or -100",
                                  [](int64_t id) { return id >= 0 || id == kIgnoredLabel; });
  }
  if (is_given(object, "target")) record.target = read_text(object, "target");
  if (!is_given(object, "position_ids")) return;
  record.position_ids = read_integers(object, "position_ids", "integers of 0 or more",
                                      [](int64_t position) { return position >= 0; });
  if (!record.has_ids) reject("'position_ids' needs 'input_ids'");
  if (record.position_ids.size() != record.input_ids.size()) {
    reject(fmt::format("'position_ids' has {} entries for {} input_ids", record.position_ids.size(),
                       record.input_ids.size()));
  }
}

void read_object(const json& object, RecordFields fields, Record& record) {
  if (!object.is_object()) reject(fmt::format("is {}, expected an object", object.type_name()));
  read_id(object, record);
  const bool has_text = object.contains("text");
  const bool has_ids = object.contains("input_ids");
  if (has_text == has_ids) {
    reject(has_text ? "has both 'text' and 'input_ids'" : "has neither 'text' nor 'input_ids'");
  }
  if (has_ids) {
    read_ids(object, record);
  } else {
    record.text = read_text(object, "text");
  }
  if (fields == RecordFields::kSourceAndTarget) read_target(object, record);
}

class JsonlReader final : public LineFormat {
 public:
  JsonlReader(std::unique_ptr<LineReader> lines, RecordFields fields)
      : LineFormat(std::move(lines)), fields_(fields) {}
  InputFormat format() const override { return InputFormat::kJsonl; }

  bool next(Record& record) override {
    std::string_view line;
    do {
      if (!lines().next(line)) return false;
    } while (line.find_first_not_of(kBlanks) == std::string_view::npos);
    record = fresh(lines().line_number());
    record.id = std::to_string(record.line);
    try {
      read_object(parse_json(line, "", {.max_bytes = std::numeric_limits<size_t>::max()}), fields_,
                  record);
    } catch (const Error& error) {
      record.rejected = error.what();
    }
    return true;
  }

 private:
  RecordFields fields_;
};

}  // namespace

std::unique_ptr<Reader> make_jsonl_reader(std::unique_ptr<LineReader> lines, RecordFields fields) {
  return std::make_unique<JsonlReader>(std::move(lines), fields);
}

}  // namespace quintet
