// The word models by the names that tokenizer.json gives them.
#include "tokenizer/bpe.h"
#include "tokenizer/json_fields.h"
#include "tokenizer/unigram.h"
#include "tokenizer/word_level.h"
#include "tokenizer/word_model.h"

namespace quintet {

std::unique_ptr<WordModel> make_word_model(const nlohmann::json& spec, const std::string& where) {
  // Files of the first versions do not name the type. A unigram's vocabulary is a list.
  const bool is_unnamed = member(spec, "type").is_null();
  const std::string type = is_unnamed && member(spec, "vocab").is_array() ? "Unigram"
                           : is_unnamed && member(spec, "merges").is_array()
                               ? "BPE"
                               : require_string(spec, "type", where);
  const std::string here = component(where, type);
  if (type == "Unigram") {
    return read_unigram(spec, here);
  }
  if (type == "BPE") {
    return read_bpe(spec, here);
  }
  if (type == "WordLevel") {
    return read_word_level(spec, here);
  }
  fail(ErrorKind::kFile, "{}: '{}' is not supported; this program knows Unigram, BPE, WordLevel",
       where, type);
}

}  // namespace quintet
