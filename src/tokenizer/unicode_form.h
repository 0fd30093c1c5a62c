// Unicode normalization forms of traced text.
#ifndef QUINTET_TOKENIZER_UNICODE_FORM_H_
#define QUINTET_TOKENIZER_UNICODE_FORM_H_

#include <optional>
#include <string_view>

#include "tokenizer/traced_text.h"

namespace quintet {

struct UnicodeForm {
  bool compatibility = false;
  bool composed = false;
};

// "NFC", "NFD", "NFKC", "NFKD"
std::optional<UnicodeForm> parse_unicode_form(std::string_view name);

// Linear but for the sorting of runs of combining marks. Origins are exact up to runs between ASCII
// characters: all bytes of such a run's result come from the whole run.
TracedText to_unicode_form(const TracedText& in, UnicodeForm form);

}  // namespace quintet

#endif  // QUINTET_TOKENIZER_UNICODE_FORM_H_
