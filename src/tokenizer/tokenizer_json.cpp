#include "tokenizer/tokenizer_json.h"

#include <utility>

#include "core/json.h"
#include "tokenizer/bpe.h"
#include "tokenizer/json_fields.h"
#include "tokenizer/pipeline_tokenizer.h"

namespace quintet {
namespace {

std::vector<AddedToken> read_added_tokens(const nlohmann::json& list, const std::string& where) {
  std::vector<AddedToken> tokens;
  if (list.is_null()) {
    return tokens;
  }
  if (!list.is_array()) {
    fail(ErrorKind::kFile, "{}: must be a list", where);
  }
  for (const nlohmann::json& entry : list) {
    AddedToken token;
    token.content = require_string(entry, "content", where);
    token.single_word = bool_or(entry, "single_word", false, where);
    token.lstrip = bool_or(entry, "lstrip", false, where);
    token.rstrip = bool_or(entry, "rstrip", false, where);
    token.normalized = bool_or(entry, "normalized", true, where);
    token.special = bool_or(entry, "special", false, where);
    tokens.push_back(std::move(token));
  }
  return tokens;
}

}  // namespace

std::unique_ptr<Tokenizer> parse_tokenizer_json(std::string_view text, const std::string& where,
                                                CleanUp clean_up) {
  const nlohmann::json spec = parse_json(text, where);
  if (!spec.is_object()) {
    fail(ErrorKind::kFile, "{}: an object expected", where);
  }
  PipelineParts parts;
  parts.added_tokens = read_added_tokens(member(spec, "added_tokens"), where + ": added_tokens");
  parts.normalizer = make_normalizer(member(spec, "normalizer"), where + ": normalizer");
  parts.pre_tokenizer =
      make_pre_tokenizer(member(spec, "pre_tokenizer"), where + ": pre_tokenizer");
  parts.model = make_word_model(member(spec, "model"), where + ": model");
  parts.decoder = make_token_decoder(member(spec, "decoder"), where + ": decoder");
  parts.clean_up = clean_up.applies_to(dynamic_cast<const Bpe*>(parts.model.get()) != nullptr);
  parts.post_template =
      read_post_template(member(spec, "post_processor"), where + ": post_processor");
  return std::make_unique<PipelineTokenizer>(std::move(parts), where);
}

}  // namespace quintet
