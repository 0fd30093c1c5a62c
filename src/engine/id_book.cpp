#include "engine/id_book.h"

#include <fmt/format.h>
#include <xxhash.h>

namespace quintet {

Hash128 hash_of(const void* data, size_t size) {
  const XXH128_hash_t hash = XXH3_128bits(data, size);
  return {hash.low64, hash.high64};
}

bool IdBook::claim(const std::string& id) {
  const std::string key = output_key(output_, id);
  return keys_.insert(hash_of(key.data(), key.size())).second;
}

void IdBook::release(const std::string& id) {
  const std::string key = output_key(output_, id);
  keys_.erase(hash_of(key.data(), key.size()));
}

std::string IdBook::take(std::string& id, bool& failure) {
  if (std::string problem = id_problem(output_, id); !problem.empty()) return problem;
  if (claim(id)) return "";
  if (on_duplicate_ == OnDuplicate::kRename) {
    uint64_t& number = renamed_.try_emplace(hash_of(id.data(), id.size()), 1).first->second;
    while (true) {
      std::string renamed = fmt::format("{}_{}", id, ++number);
      if (!claim(renamed)) continue;
      id = std::move(renamed);
      return "";
    }
  }
  failure = on_duplicate_ != OnDuplicate::kFirst;
  const std::string key = output_key(output_, id);
  if (key == id) return fmt::format("the id '{}' stands more than once", id);
  return fmt::format("the id '{}' is written as '{}', which an earlier record has taken", id, key);
}

}  // namespace quintet
