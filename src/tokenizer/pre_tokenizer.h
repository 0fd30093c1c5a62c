// The pre-tokenizers of tokenizer.json: text to words, each of which the model then takes alone.
#ifndef QUINTET_TOKENIZER_PRE_TOKENIZER_H_
#define QUINTET_TOKENIZER_PRE_TOKENIZER_H_

#include <cstddef>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tokenizer/traced_text.h"

namespace quintet {

// Words are ranges of one text, in order, none empty; what lies between them is dropped.
struct Words {
  struct Range {
    size_t begin = 0;
    size_t end = 0;
    bool is_first = false;  // begins where the original text begins
  };
  TracedText text;
  std::vector<Range> ranges;

  void add(size_t begin, size_t end);  // nothing where the range is empty
};

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  virtual Words apply(Words words) const = 0;
};

// Whether words are marked with ▁ at their beginning: each, the one at the text's beginning, none.
enum class PrependScheme { kAlways, kFirst, kNever };

// Null where `spec` is null. Throws Error(kFile), naming file and component, for what is unknown.
std::unique_ptr<PreTokenizer> make_pre_tokenizer(const nlohmann::json& spec,
                                                 const std::string& where);

// What the published conversion of a T5 spiece.model uses: words between white space, each marked.
std::unique_ptr<PreTokenizer> make_t5_pre_tokenizer();
std::unique_ptr<PreTokenizer> make_metaspace(PrependScheme scheme);

}  // namespace quintet

#endif  // QUINTET_TOKENIZER_PRE_TOKENIZER_H_
