// One record of the input, as a reader hands it on.
#ifndef QUINTET_CORE_RECORD_H_
#define QUINTET_CORE_RECORD_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace quintet {

inline constexpr int64_t kIgnoredLabel = -100;  // a place that does not count

struct Record {
  uint64_t ordinal = 0;  // counted from 0 over the whole input, rejected records included
  uint64_t line = 0;     // where it starts, counted from 1
  std::string id;        // UTF-8
  std::string text;      // residues or text; unused where input_ids are given
  bool has_ids = false;  // JSONL with "input_ids"
  std::vector<int64_t> input_ids;
  std::vector<uint8_t> attention_mask;  // empty: every id counts
  // What generating and scoring read beside it, from JSONL alone; empty: not given.
  std::vector<int64_t> decoder_input_ids;
  std::vector<int64_t> labels;        // ids of 0 or more, or kIgnoredLabel
  std::optional<std::string> target;  // labels as text; never beside `labels`
  std::vector<int64_t> position_ids;  // of each of input_ids, 0 or more
  bool empty = false;    // rejected because nothing is in it: --skip-empty forgives that
  std::string rejected;  // not empty: why the record cannot be used; the run goes on without it
};

}  // namespace quintet

#endif  // QUINTET_CORE_RECORD_H_
