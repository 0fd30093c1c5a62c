// What a tokenizer puts around the tokens of a text: the single-sequence template of
// tokenizer.json.
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
  bool after_once = false;  // `after` is left out where the text itself ends with it
};

// A null `spec` gives an empty template. Throws Error(kFile), naming file and component.
PostTemplate read_post_template(const nlohmann::json& spec, const std::string& where);

}  // namespace quintet

#endif  // QUINTET_TOKENIZER_POST_TEMPLATE_H_
