// Which ids an output has taken: two records that would stand under one name there cannot both be
// written, and the second is told so before it is computed.
#ifndef QUINTET_ENGINE_ID_BOOK_H_
#define QUINTET_ENGINE_ID_BOOK_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "engine/options.h"
#include "output/writer.h"

namespace quintet {

using Hash128 = std::array<uint64_t, 2>;
struct TakeFirstWord {
  size_t operator()(const Hash128& hash) const { return hash[0]; }
};
Hash128 hash_of(const void* data, size_t size);

class IdBook {
 public:
  IdBook(OutputOptions output, OnDuplicate on_duplicate)
      : output_(std::move(output)), on_duplicate_(on_duplicate) {}

  // Takes the record's id, or renames it where that is asked for. Why it cannot be used; empty: it
  // can, and is taken. `failure` becomes false where the refusal was asked for.
  std::string take(std::string& id, bool& failure);
  // A record that is rejected for another reason gives its id to the next that has it.
  void release(const std::string& id);

 private:
  bool claim(const std::string& id);

  OutputOptions output_;
  OnDuplicate on_duplicate_;
  std::unordered_set<Hash128, TakeFirstWord> keys_;               // names taken in the output
  std::unordered_map<Hash128, uint64_t, TakeFirstWord> renamed_;  // id -> the last number tried
};

}  // namespace quintet

#endif  // QUINTET_ENGINE_ID_BOOK_H_
