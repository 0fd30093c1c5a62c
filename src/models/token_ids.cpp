#include "models/token_ids.h"

#include "core/error.h"

namespace quintet {

std::string shown(std::optional<int64_t> id) { return id ? fmt::format("{}", *id) : "none"; }

std::string shown(const std::vector<int64_t>& ids) {
  return ids.empty() ? "none" : fmt::format("{}", fmt::join(ids, ", "));
}

TokenIds parse_token_ids(const ConfigReader& reader, const TokenIds& defaults) {
  constexpr ConfigReader::Range kRange{.least = -1, .most = (1 << 28) - 1};
  const auto one = [&](const char* key, std::optional<int64_t> otherwise) {
    const auto found = reader.integer(key, kRange);
    if (!found) return reader.is_null(key) ? std::nullopt : otherwise;
    return *found < 0 ? std::nullopt : found;
  };
  TokenIds ids;
  ids.bos = one("bos_token_id", defaults.bos);
  ids.pad = one("pad_token_id", defaults.pad);
  ids.decoder_start = one("decoder_start_token_id", defaults.decoder_start);
  const auto eos = reader.integers("eos_token_id", kRange);
  if (!eos && !reader.is_null("eos_token_id")) ids.eos = defaults.eos;
  if (eos) ids.eos = *eos;
  std::erase_if(ids.eos, [](int64_t id) { return id < 0; });
  return ids;
}

}  // namespace quintet
