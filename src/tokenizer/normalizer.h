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

// A character map as spiece.model holds it; null where there is none.
std::unique_ptr<Normalizer> make_charsmap_normalizer(std::string_view blob,
                                                     const std::string& where);

}  // namespace quintet

#endif  // QUINTET_TOKENIZER_NORMALIZER_H_
