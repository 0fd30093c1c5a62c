#include "tokenizer/post_template.h"

#include "tokenizer/json_fields.h"

namespace quintet {
namespace {

void append_special(const nlohmann::json& spec, const std::string& name, const std::string& where,
                    std::vector<int32_t>& ids) {
  const nlohmann::json& list = member(member(member(spec, "special_tokens"), name.c_str()), "ids");
  if (!list.is_array()) {
    fail(ErrorKind::kFile, "{}: 'special_tokens' has no ids for '{}'", where, name);
  }
  for (const nlohmann::json& id : list) {
    ids.push_back(require_id(id, "ids", where));
  }
}

}  // namespace

PostTemplate read_post_template(const nlohmann::json& spec, const std::string& where) {
  PostTemplate result;
  if (spec.is_null()) {
    return result;
  }
  const std::string type = require_string(spec, "type", where);
  const std::string here = component(where, type);
  const nlohmann::json& single = member(spec, "single");
  if (type != "TemplateProcessing" || !single.is_array()) {
    fail(ErrorKind::kFile, "{}: '{}' is not supported; TemplateProcessing with a list 'single' is",
         where, type);
  }
  int n_sequences = 0;
  for (const nlohmann::json& part : single) {
    if (!member(part, "Sequence").is_null()) {
      ++n_sequences;
    } else {
      append_special(spec, require_string(member(part, "SpecialToken"), "id", here), here,
                     n_sequences == 0 ? result.before : result.after);
    }
  }
  if (n_sequences != 1) {
    fail(ErrorKind::kFile, "{}: 'single' has {} sequences, 1 expected", here, n_sequences);
  }
  return result;
}

}  // namespace quintet
