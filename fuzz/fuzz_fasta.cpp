// FASTA and text, plain or gzip: any bytes give records in order or an Error.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "input/formats.h"
#include "quintet/error.h"

namespace {

void read_as(const std::string& bytes, quintet::InputFormat format) {
  try {
    const auto reader = quintet::make_reader(quintet::from_memory(bytes), "x", format);
    quintet::Record record;
    uint64_t expected = 0;
    while (reader->next(record)) {
      if (record.ordinal != expected++) std::abort();
      const bool fasta = reader->format() == quintet::InputFormat::kFasta;
      if (fasta && record.rejected.empty() && (record.id.empty() || record.text.empty())) {
        std::abort();
      }
      if (quintet::valid_utf8(record.id) != record.id) std::abort();
    }
  } catch (const quintet::Error&) {  // an answer too
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  read_as(bytes, quintet::InputFormat::kAuto);
  read_as(bytes, quintet::InputFormat::kFasta);
  return 0;
}
