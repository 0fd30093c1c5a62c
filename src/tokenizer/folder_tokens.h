// What the small files of a checkpoint folder say about a tokenizer that has no tokenizer.json:
// tokenizer_config.json, special_tokens_map.json, added_tokens.json, and config.json for its class.
#ifndef QUINTET_TOKENIZER_FOLDER_TOKENS_H_
#define QUINTET_TOKENIZER_FOLDER_TOKENS_H_

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/added_tokens.h"
#include "tokenizer/pipeline_tokenizer.h"

namespace quintet {

struct FolderTokens {
  struct Named {
    std::string role;  // "eos_token", "unk_token", ...
    AddedToken token;
    bool is_plain = false;  // given as a string, without properties
  };

  std::string tokenizer_class;    // "" where no file names it
  std::vector<AddedToken> added;  // by id
  std::vector<Named> named;       // in the order in which the reference adds them
  // The list of extra special tokens in tokenizer_config.json, and in special_tokens_map.json.
  std::optional<std::vector<AddedToken>> extra;
  std::optional<std::vector<AddedToken>> extra_of_map;
  std::optional<int32_t> extra_ids;
  bool legacy = true;
  bool add_prefix_space = false;
  bool add_bos_token = false;
  bool add_eos_token = false;
  CleanUp clean_up;

  std::string name_of(std::string_view role, std::string_view fallback) const;
};

// What tokenizer_config.json says, which counts beside a tokenizer.json, too. Throws Error(kFile).
CleanUp read_clean_up(const std::filesystem::path& folder);

// Throws Error(kFile).
FolderTokens read_folder_tokens(const std::filesystem::path& folder);

}  // namespace quintet

#endif  // QUINTET_TOKENIZER_FOLDER_TOKENS_H_
