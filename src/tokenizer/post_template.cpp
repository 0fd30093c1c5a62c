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

void read_template(const nlohmann::json& spec, const std::string& where, PostTemplate& result) {
  const nlohmann::json& single = member(spec, "single");
  if (!single.is_array()) {
    fail(ErrorKind::kFile, "{}: 'single' must be a list", where);
  }
  int n_sequences = 0;
  for (const nlohmann::json& part : single) {
    if (!member(part, "Sequence").is_null()) {
      ++n_sequences;
    } else {
      append_special(spec, require_string(member(part, "SpecialToken"), "id", where), where,
                     n_sequences == 0 ? result.before : result.after);
    }
  }
  if (n_sequences != 1) {
    fail(ErrorKind::kFile, "{}: 'single' has {} sequences, 1 expected", where, n_sequences);
  }
}

void read_step(const nlohmann::json& spec, const std::string& where, PostTemplate& result) {
  const std::string type = require_string(spec, "type", where);
  const std::string here = component(where, type);
  if (type == "TemplateProcessing" && result.before.empty() && result.after.empty()) {
    read_template(spec, here, result);
  } else if (type == "ByteLevel") {
    result.trims_spaces = bool_or(spec, "trim_offsets", true, here);
    result.keeps_first_space = bool_or(spec, "add_prefix_space", true, here);
  } else if (type == "Sequence" && member(spec, "processors").is_array()) {
    for (const nlohmann::json& step : member(spec, "processors")) read_step(step, here, result);
  } else {
    fail(ErrorKind::kFile,
         "{}: '{}' is not supported here; this program knows Sequence, ByteLevel and one "
         "TemplateProcessing",
         where, type);
  }
}

}  // namespace

PostTemplate read_post_template(const nlohmann::json& spec, const std::string& where) {
  PostTemplate result;
  if (!spec.is_null()) read_step(spec, where, result);
  return result;
}

}  // namespace quintet
