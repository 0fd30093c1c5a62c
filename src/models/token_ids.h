// Token ids that a model's config.json gives.
#ifndef QUINTET_MODELS_TOKEN_IDS_H_
#define QUINTET_MODELS_TOKEN_IDS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/config_reader.h"

namespace quintet {

// Each may be missing: where the file says null or -1, or says nothing and the original's
// configuration class has no default.
struct TokenIds {
  std::optional<int64_t> bos;
  std::vector<int64_t> eos;
  std::optional<int64_t> pad;
  std::optional<int64_t> decoder_start;
};

// For people: the id, "1, 7", or "none".
std::string shown(std::optional<int64_t> id);
std::string shown(const std::vector<int64_t>& ids);

// Throws Error(kFile) that names the key.
TokenIds parse_token_ids(const ConfigReader& reader, const TokenIds& defaults);

}  // namespace quintet

#endif  // QUINTET_MODELS_TOKEN_IDS_H_
