// From a record as it was read to what the stacks of a model that generates are given: the
// encoder's ids, and the decoder's prompt or teacher-forced ids.
#ifndef QUINTET_ENGINE_PROMPT_READER_H_
#define QUINTET_ENGINE_PROMPT_READER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/micro_batch.h"
#include "core/record.h"
#include "engine/forward_batch.h"
#include "engine/generation_model.h"
#include "engine/record_encoder.h"
#include "generation/generation_config.h"
#include "tokenizer/tokenizer.h"

namespace quintet {

struct Prompt {
  Sequence source;              // the encoder's; without tokens in a decoder alone
  std::vector<int32_t> tokens;  // the decoder's, masked ones left out; at least one
  int64_t padded_length = 0;    // of the decoder's row, masked ids counted
  bool empty = false;           // rejected because nothing is in it
  std::string rejected;         // not empty: why the record cannot be computed
};

// A record under teacher forcing.
struct ScoredPrompt {
  ForwardItem item;  // the decoder's positions count masked ids, too, unless they are given
  // Which logits tell of which token: row of the decoder's sequence, and the token that follows.
  std::vector<int32_t> rows;
  std::vector<int32_t> labels;
  std::vector<uint8_t> mask;  // of the decoder's row as given; empty: every id counts
  bool empty = false;
  std::string rejected;
};

class PromptReader {
 public:
  // Throws Error(kUsage) where the model reads an encoder and nothing tells with which token its
  // decoder starts.
  PromptReader(const Options& options, InputFormat format, const GenerationFolder& folder,
               const GenerationConfig& config);

  Prompt read(const Record& record);
  // with_choices: labels are not needed, the last row's logits are asked for.
  ScoredPrompt read_scored(const Record& record, bool with_choices);

  const EncodingNotes& notes() const { return encoder_.notes(); }
  void forget_since(const EncodingNotes& notes) { encoder_.forget_since(notes); }
  std::string reading() { return encoder_.reading(); }
  // Null where the folder has no tokenizer's files.
  const Tokenizer* tokenizer() { return encoder_.tokenizer(); }

 private:
  Sequence read_source(const Record& record, std::string& rejected, bool& empty);
  void score_own_tokens(const Record& record, ScoredPrompt& prompt);
  void score_labels(const Record& record, ScoredPrompt& prompt);
  void check_ids(const std::vector<int64_t>& ids, const char* key) const;

  const Options& options_;
  const GenerationFolder& folder_;
  GenerationConfig config_;
  int32_t start_token_;  // of a decoder behind an encoder
  RecordEncoder encoder_;
};

}  // namespace quintet

#endif  // QUINTET_ENGINE_PROMPT_READER_H_
