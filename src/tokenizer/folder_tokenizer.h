// Builds the tokenizer of a folder without tokenizer.json, as the published classes do.
#ifndef QUINTET_TOKENIZER_FOLDER_TOKENIZER_H_
#define QUINTET_TOKENIZER_FOLDER_TOKENIZER_H_

#include <memory>
#include <string>

#include "tokenizer/bpe.h"
#include "tokenizer/folder_tokens.h"
#include "tokenizer/spiece.h"
#include "tokenizer/tokenizer.h"

namespace quintet {

// T5Tokenizer: the pieces of spiece.model with <extra_id_n> behind them in falling order. `where`
// begins messages.
std::unique_ptr<Tokenizer> make_t5_tokenizer(Spiece spiece, const FolderTokens& tokens,
                                             const std::string& where);

// ByT5Tokenizer: bytes, with <extra_id_n> behind them in the order of the folder's list.
std::unique_ptr<Tokenizer> make_byt5_tokenizer(const FolderTokens& tokens,
                                               const std::string& where);

// GPT2Tokenizer: byte-level BPE of vocab.json and merges.txt.
std::unique_ptr<Tokenizer> make_gpt2_tokenizer(BpeParts bpe, const FolderTokens& tokens,
                                               const std::string& where);

}  // namespace quintet

#endif  // QUINTET_TOKENIZER_FOLDER_TOKENIZER_H_
