// Any bytes as a tokenizer.json, of which what loads must encode any text.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "quintet/error.h"
#include "tokenizer/tokenizer_json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    const auto tokenizer = quintet::parse_tokenizer_json(bytes, "tokenizer.json");
    tokenizer->encode_tokens("Hi  there\u2581\uFB01 </s><pad>e\u0301\r\n", true);
    tokenizer->encode(bytes.substr(0, 256), true);
  } catch (const quintet::Error&) {
  }
  return 0;
}
