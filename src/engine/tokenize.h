// quintet tokenize: ids, pieces and offsets of every record, as JSONL.
#ifndef QUINTET_ENGINE_TOKENIZE_H_
#define QUINTET_ENGINE_TOKENIZE_H_

#include <cstdint>

#include "engine/options.h"
#include "engine/record_encoder.h"

namespace quintet {

struct TokenizeResult {
  uint64_t records = 0;
  uint64_t failed = 0;
  EncodingNotes notes;
};

// One line per record: {"id", "input_ids", "pieces", "offsets": [[begin, end], ...]}, offsets in
// bytes of the text; of a protein, and of a record of input_ids, without offsets; of a record that
// cannot be used {"id", "error"}. Output "-" or none is standard output.
TokenizeResult run_tokenize(const Options& options);

}  // namespace quintet

#endif  // QUINTET_ENGINE_TOKENIZE_H_
