// The normalizers of tokenizer.json: text to text, before it is cut into words.
#ifndef QUINTET_TOKENIZER_NORMALIZER_H_
#define QUINTET_TOKENIZER_NORMALIZER_H_

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "tokenizer/traced_text.h"

namespace quintet {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual TracedText apply(TracedText text) const = 0;
};

// Null where `spec` is null. Throws Error(kFile), naming file and component, for what is unknown.
std::unique_ptr<Normalizer> make_normalizer(const nlohmann::json& spec, const std::string& where);

// What normalisation may make of a text of `bytes` bytes; more than any Unicode form or published
// character map. A file could ask for exponentially more.
inline TextBudget text_budget(size_t bytes, std::string_view component) {
  return {64 * bytes + (size_t{64} << 10), component};
}

// A character map as spiece.model holds it; null where there is none.
std::unique_ptr<Normalizer> make_charsmap_normalizer(std::string_view blob,
                                                     const std::string& where);

}  // namespace quintet

#endif  // QUINTET_TOKENIZER_NORMALIZER_H_
