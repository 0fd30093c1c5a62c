// Reading the objects of tokenizer files, with errors that name the file and the field.
#ifndef QUINTET_TOKENIZER_JSON_FIELDS_H_
#define QUINTET_TOKENIZER_JSON_FIELDS_H_

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "core/error.h"

namespace quintet {

// The member `key` of `object`, or null where there is none.
inline const nlohmann::json& member(const nlohmann::json& object, const char* key) {
  static const nlohmann::json none;
  if (!object.is_object()) {
    return none;
  }
  const auto found = object.find(key);
  return found == object.end() ? none : *found;
}

inline std::string require_string(const nlohmann::json& object, const char* key,
                                  const std::string& where) {
  const nlohmann::json& value = member(object, key);
  if (!value.is_string()) {
    fail(ErrorKind::kFile, "{}: '{}' is {}, a string expected", where, key,
         value.is_null() ? "missing" : value.type_name());
  }
  return value.get<std::string>();
}

// `fallback` where the member is missing or null.
inline bool bool_or(const nlohmann::json& object, const char* key, bool fallback,
                    const std::string& where) {
  const nlohmann::json& value = member(object, key);
  if (value.is_null()) {
    return fallback;
  }
  if (!value.is_boolean()) {
    fail(ErrorKind::kFile, "{}: '{}' is {}, true or false expected", where, key, value.type_name());
  }
  return value.get<bool>();
}

// A token id: 0 ... 2^31 - 1.
inline int32_t require_id(const nlohmann::json& value, const char* key, const std::string& where) {
  if (!value.is_number_integer() || (!value.is_number_unsigned() && value.get<int64_t>() < 0) ||
      value.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int32_t>::max())) {
    fail(ErrorKind::kFile, "{}: '{}' is {}, a token id of 0 or more expected", where, key,
         value.dump().substr(0, 40));
  }
  return value.get<int32_t>();
}

// "tokenizer.json: normalizer" and "Strip" give "tokenizer.json: normalizer Strip".
inline std::string component(const std::string& where, const std::string& type) {
  return where + " " + type;
}

}  // namespace quintet

#endif  // QUINTET_TOKENIZER_JSON_FIELDS_H_
