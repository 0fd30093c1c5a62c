// Any bytes as a vocab.json and, behind a NUL, a merges.txt; what loads must encode any word.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/json.h"
#include "quintet/error.h"
#include "tokenizer/bpe.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const size_t nul = std::min(bytes.find('\0'), size);
  try {
    quintet::BpeParts parts;
    parts.vocab = quintet::read_bpe_vocab(quintet::parse_json(bytes.substr(0, nul), "vocab.json"),
                                          "vocab.json");
    parts.merges = quintet::parse_merges(bytes.substr(std::min(nul + 1, size)), "merges.txt");
    const quintet::Bpe bpe(std::move(parts), "vocab.json");
    const auto ignore = [](auto&&...) {};
    bpe.encode("abababab\u0120\u0120c", ignore);
    std::string word(bytes.substr(0, 256));  // words are valid UTF-8 by then
    for (char& c : word) c = static_cast<char>(c & 0x7F);
    if (!word.empty()) bpe.encode(word, ignore);
  } catch (const quintet::Error&) {
  }
  return 0;
}
