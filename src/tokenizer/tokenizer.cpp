#include "tokenizer/tokenizer.h"

namespace quintet {

std::string Tokenizer::decode(std::span<const int32_t> ids, const DecodeOptions& options) const {
  StreamDecoder stream = stream_decoder(options);
  std::string text;
  for (const int32_t id : ids) text += stream.push(id);
  return text + stream.flush();
}

}  // namespace quintet
