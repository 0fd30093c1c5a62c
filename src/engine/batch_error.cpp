#include "engine/batch_error.h"

#include "core/error.h"

namespace quintet {

void fail_with_records(const BatchError& error, const std::function<std::string(uint64_t)>& id_of) {
  constexpr size_t kMostBytes = 200;
  std::string ids;
  for (const uint64_t ordinal : error.ordinals()) {
    if (ids.size() > kMostBytes) {
      ids += ", ...";
      break;
    }
    ids += (ids.empty() ? "'" : ", '") + id_of(ordinal) + "'";
  }
  if (ids.empty()) fail(error.kind(), "{}", error.what());
  fail(error.kind(), "{} (while computing the records {})", error.what(), ids);
}

}  // namespace quintet
