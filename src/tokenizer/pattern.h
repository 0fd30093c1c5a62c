// The search patterns of tokenizer.json: a fixed string, or a regular expression of the syntax that
// the Hugging Face tokenizers take, as far as it can be matched in linear time.
#ifndef QUINTET_TOKENIZER_PATTERN_H_
#define QUINTET_TOKENIZER_PATTERN_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace re2 {
class RE2;
}

namespace quintet {

class Pattern {
 public:
  struct Match {  // bytes [begin, end)
    size_t begin = 0;
    size_t end = 0;
  };

  // {"String": "..."} or {"Regex": "..."}. Throws Error(kFile) that begins with `where`.
  Pattern(const nlohmann::json& spec, const std::string& where);

  // Visits all matches from left to right, none overlapping and none empty.
  void for_each_match(std::string_view text, const std::function<void(Match)>& visit) const;

 private:
  std::string literal_;
  std::shared_ptr<const re2::RE2> regex_;  // null: match literal_
  bool only_at_ends_ = false;              // the trimming pattern, which needs no search
};

}  // namespace quintet

#endif  // QUINTET_TOKENIZER_PATTERN_H_
