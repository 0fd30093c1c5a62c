// The pre-tokenizers of tokenizer.json: text to words, each of which the model then takes alone.
#ifndef QUINTET_TOKENIZER_PRE_TOKENIZER_H_
#define QUINTET_TOKENIZER_PRE_TOKENIZER_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "tokenizer/traced_text.h"

namespace quintet {

// Bytes [begin, end) of a text: a word, or the text that is yet to be cut.
struct WordRange {
  size_t begin = 0;
  size_t end = 0;
};

// Takes a word, never empty. The text it stands in lasts until the call returns.
using WordSink = std::function<void(const TracedText& text, WordRange word)>;

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  // Hands the words in `range` of `text` to `sink`, in order and one by one: a list of all of them
  // would be many times larger than the text.
  virtual void cut(const TracedText& text, WordRange range, const WordSink& sink) const = 0;
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
