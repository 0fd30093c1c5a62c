// The tokenizer that tokenizer.json describes: added tokens are cut out, the rest is normalised,
// cut into words, and each word goes through the model.
#ifndef QUINTET_TOKENIZER_PIPELINE_TOKENIZER_H_
#define QUINTET_TOKENIZER_PIPELINE_TOKENIZER_H_

#include <memory>
#include <string>
#include <vector>

#include "tokenizer/added_tokens.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/post_template.h"
#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/word_model.h"

namespace quintet {

struct PipelineParts {
  std::vector<AddedToken> added_tokens;
  std::unique_ptr<Normalizer> normalizer;       // may be null
  std::unique_ptr<PreTokenizer> pre_tokenizer;  // may be null: the text is one word
  std::unique_ptr<WordModel> model;
  PostTemplate post_template;
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

 private:
  struct Placed {
    std::vector<int32_t> ids;
    std::vector<Span> spans;  // what each came from, where that is traced by bytes; else empty

    void add(int32_t id, Span span, Tracing tracing);
  };

  Placed place_tokens(std::string_view text, bool add_special, Tracing tracing) const;
  void encode_raw(TracedText text, Placed& placed) const;
  void encode_words(const TracedText& text, Placed& placed) const;

  std::unique_ptr<Normalizer> normalizer_;
  std::unique_ptr<PreTokenizer> pre_tokenizer_;
  std::unique_ptr<WordModel> model_;
  PostTemplate post_template_;
  std::string normalizer_name_;  // for messages
  AddedTokens added_;
};

}  // namespace quintet

#endif  // QUINTET_TOKENIZER_PIPELINE_TOKENIZER_H_
