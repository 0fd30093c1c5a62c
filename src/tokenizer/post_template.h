// What a tokenizer does with the tokens of a text at the end: what it puts around them, the
// single-sequence template of tokenizer.json, and whether spaces count to where they came from.
#ifndef QUINTET_TOKENIZER_POST_TEMPLATE_H_
#define QUINTET_TOKENIZER_POST_TEMPLATE_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace quintet {

struct PostTemplate {
  std::vector<int32_t> before;
  std::vector<int32_t> after;
  bool after_once = false;         // `after` is left out where the text itself ends with it
  bool trims_spaces = false;       // byte-level: offsets leave out the spaces around a token,
  bool keeps_first_space = false;  // but for one that the text's first token begins with
};

// A null `spec` gives an empty template. Throws Error(kFile), naming file and component.
PostTemplate read_post_template(const nlohmann::json& spec, const std::string& where);

}  // namespace quintet

#endif  // QUINTET_TOKENIZER_POST_TEMPLATE_H_
