// Helpers of this room's tests.
#ifndef QUINTET_TOKENIZER_TESTING_H_
#define QUINTET_TOKENIZER_TESTING_H_

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "core/json.h"

namespace quintet::testing {

inline std::filesystem::path fixture(const std::string& name) {
  return std::filesystem::path(QUINTET_FIXTURES) / "tokenizers" / name;
}

// A unigram over single letters and "ab", with marks, as a tokenizer.json to be altered.
inline nlohmann::json small_tokenizer_json() {
  return nlohmann::json::parse(R"({
    "added_tokens": [{"id": 0, "content": "<pad>", "normalized": false, "special": true},
                     {"id": 1, "content": "</s>", "normalized": false, "special": true}],
    "normalizer": null,
    "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"},
    "post_processor": {"type": "TemplateProcessing",
      "single": [{"Sequence": {"id": "A", "type_id": 0}},
                 {"SpecialToken": {"id": "</s>", "type_id": 0}}],
      "special_tokens": {"</s>": {"id": "</s>", "ids": [1], "tokens": ["</s>"]}}},
    "model": {"type": "Unigram", "unk_id": 2, "vocab": [
      ["<pad>", 0], ["</s>", 0], ["<unk>", 0], ["▁", -2], ["a", -3], ["b", -3.5], ["ab", -6],
      ["▁a", -4], ["c", -5]]}})");
}

}  // namespace quintet::testing

#endif  // QUINTET_TOKENIZER_TESTING_H_
