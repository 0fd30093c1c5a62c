// Text to token ids and back, as the checkpoint's own tokenizer files say.
#ifndef QUINTET_TOKENIZER_TOKENIZER_H_
#define QUINTET_TOKENIZER_TOKENIZER_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/stream_decoder.h"

namespace quintet {

struct Token {
  int32_t id = 0;
  std::string_view piece;  // the tokenizer's own
  uint32_t begin = 0;      // bytes [begin, end) of the text that it came from; empty for </s>
  uint32_t end = 0;
};

struct DecodeOptions {
  bool skip_special_tokens = false;
  // Whether spaces before punctuation and English endings go; nothing: as tokenizer_config.json
  // says, else they stay. BPE has them stay unless tokenizer_config.json insists.
  std::optional<bool> clean_up_tokenization_spaces = std::nullopt;
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  // With `add_special` what the model expects at the end (</s>) is added. Any bytes are accepted;
  // invalid UTF-8 is read as U+FFFD. Linear in the length of the text. Thread-safe.
  virtual std::vector<int32_t> encode(std::string_view text, bool add_special) const = 0;
  virtual std::vector<Token> encode_tokens(std::string_view text, bool add_special) const = 0;
  virtual int32_t vocab_size() const = 0;  // added tokens included
  virtual std::optional<int32_t> find(std::string_view piece) const = 0;
  virtual std::string piece(int32_t id) const = 0;    // "" where there is none
  virtual int32_t unk_id() const = 0;                 // -1 where there is none
  virtual std::optional<int32_t> eos_id() const = 0;  // what add_special appends, if anything
  virtual bool is_special(int32_t id) const = 0;      // skipped where skip_special_tokens is set

  // The text of `ids` as the reference's tokenizer decodes them, in valid UTF-8. Ids that stand for
  // nothing are passed over. Throws Error(kFile) where the tokenizer's decoder is not supported.
  std::string decode(std::span<const int32_t> ids, const DecodeOptions& options = {}) const;
  // The same, one id after the other. Lives no longer than the tokenizer.
  virtual StreamDecoder stream_decoder(const DecodeOptions& options) const = 0;
};

// Reads tokenizer.json, else spiece.model, else vocab.json and merges.txt (each with
// tokenizer_config.json, special_tokens_map.json, added_tokens.json), else ByT5 bytes where
// config.json / tokenizer_config.json say so. Throws Error(kFile).
std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& folder);

}  // namespace quintet

#endif  // QUINTET_TOKENIZER_TOKENIZER_H_
