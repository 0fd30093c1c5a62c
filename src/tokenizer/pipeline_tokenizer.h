// The tokenizer that tokenizer.json describes: added tokens are cut out, the rest is normalised,
// cut into words, and each word goes through the model.
#ifndef QUINTET_TOKENIZER_PIPELINE_TOKENIZER_H_
#define QUINTET_TOKENIZER_PIPELINE_TOKENIZER_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tokenizer/added_tokens.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/post_template.h"
#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/token_decoder.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/word_model.h"

namespace quintet {

// What tokenizer_config.json says of taking out spaces from decoded text.
struct CleanUp {
  bool by_default = false;
  bool of_bpe = false;  // of others it is a choice of the caller, of BPE the folder's

  // Whether text is cleaned by default; nothing: it never is.
  std::optional<bool> applies_to(bool bpe) const {
    return bpe && !of_bpe ? std::nullopt : std::optional(by_default);
  }
};

struct PipelineParts {
  std::vector<AddedToken> added_tokens;
  std::unique_ptr<Normalizer> normalizer;       // may be null
  std::unique_ptr<PreTokenizer> pre_tokenizer;  // may be null: the text is one word
  std::unique_ptr<WordModel> model;
  PostTemplate post_template;
  TokenDecoder decoder;
  std::optional<bool> clean_up = false;  // see CleanUp
};

class PipelineTokenizer : public Tokenizer {
 public:
  // Throws Error(kFile) that begins with `where`.
  PipelineTokenizer(PipelineParts parts, const std::string& where);

  std::vector<int32_t> encode(std::string_view text, bool add_special) const override;
  std::vector<Token> encode_tokens(std::string_view text, bool add_special) const override;
  int32_t vocab_size() const override;
  std::optional<int32_t> find(std::string_view piece) const override;
  std::string piece(int32_t id) const override;
  int32_t unk_id() const override;
  std::optional<int32_t> eos_id() const override;
  bool is_special(int32_t id) const override;
  StreamDecoder stream_decoder(const DecodeOptions& options) const override;

 private:
  struct Placed {
    std::vector<int32_t> ids;
    std::vector<Span> spans;  // what each came from, where that is traced by bytes; else empty

    void add(int32_t id, Span span, Tracing tracing);
  };

  Placed place_tokens(std::string_view text, bool add_special, Tracing tracing) const;
  std::string_view piece_of(int32_t id) const;
  void encode_raw(TracedText text, Placed& placed) const;
  void encode_words(const TracedText& text, Placed& placed) const;

  std::unique_ptr<Normalizer> normalizer_;
  std::unique_ptr<PreTokenizer> pre_tokenizer_;
  std::unique_ptr<WordModel> model_;
  PostTemplate post_template_;
  TokenDecoder decoder_;
  std::optional<bool> clean_up_;
  std::string normalizer_name_;  // for messages
  AddedTokens added_;
};

}  // namespace quintet

#endif  // QUINTET_TOKENIZER_PIPELINE_TOKENIZER_H_
