// JSONL records: any bytes give records in order, each sound or rejected with a reason.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "input/formats.h"
#include "quintet/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto reader = quintet::make_reader(
        quintet::from_memory({reinterpret_cast<const char*>(data), size}), "x.jsonl",
        quintet::InputFormat::kJsonl, quintet::RecordFields::kSourceAndTarget);
    quintet::Record record;
    uint64_t expected = 0;
    while (reader->next(record)) {
      if (record.ordinal != expected++ || record.id.empty()) std::abort();
      if (!record.rejected.empty()) continue;
      if (record.has_ids == record.input_ids.empty()) std::abort();
      if (!record.attention_mask.empty() &&
          record.attention_mask.size() != record.input_ids.size()) {
        std::abort();
      }
      if (!record.position_ids.empty() && record.position_ids.size() != record.input_ids.size()) {
        std::abort();
      }
      if (record.target && !record.labels.empty()) std::abort();
    }
  } catch (const quintet::Error&) {  // an answer too
  }
  return 0;
}
