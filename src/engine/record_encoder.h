// From a record as it was read to the sequence that is computed: tokenizer, protein rules, checks.
#ifndef QUINTET_ENGINE_RECORD_ENCODER_H_
#define QUINTET_ENGINE_RECORD_ENCODER_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/micro_batch.h"
#include "core/record.h"
#include "engine/options.h"
#include "input/reader.h"
#include "tokenizer/protein.h"
#include "tokenizer/tokenizer.h"

namespace quintet {

struct EncodedRecord {
  Sequence sequence;          // without tokens: nothing is left of it, all rows are zero
  std::string residues;       // of a protein: as embedded, one letter per row
  std::vector<uint8_t> mask;  // as given with the ids; empty: every id counts
  bool empty = false;         // rejected because nothing is in it
  std::string rejected;       // not empty: why the record cannot be computed
};

// What was noticed over all records so far.
struct EncodingNotes {
  uint64_t changed_letters = 0;  // upper-cased or mapped to X
  uint64_t dropped_letters = 0;  // gaps, blanks, trailing stops
  uint64_t unknown_tokens = 0;
  uint64_t cut_records = 0;  // by --max-tokens
  uint64_t tokens_kept = 0;  //   of those
  uint64_t tokens_seen = 0;
};

class RecordEncoder {
 public:
  // The tokenizer is loaded at the first record that needs one: ids alone work without its files,
  // and a text among them is rejected where there are none.
  RecordEncoder(const Options& options, InputFormat format, int64_t vocab_size);
  ~RecordEncoder();

  EncodedRecord encode(const Record& record);
  const EncodingNotes& notes() const { return notes_; }
  // Takes back what was noticed since: of records that are looked at and computed elsewhere.
  void forget_since(const EncodingNotes& notes) { notes_ = notes; }
  // How records are read: "text", or the protein preset, with `auto` resolved by the vocabulary.
  // Throws Error(kFile) where the input can only hold texts and there is no tokenizer for them.
  std::string reading();
  // Null where the folder has no tokenizer's files.
  const Tokenizer* tokenizer();

 private:
  void prepare();
  void encode_protein(const std::string& residues, EncodedRecord& encoded);
  void encode_text(const std::string& text, EncodedRecord& encoded);
  void cut(EncodedRecord& encoded);

  std::filesystem::path folder_;
  ProteinOptions protein_options_;
  InputFormat format_;
  int64_t max_tokens_;
  int64_t vocab_size_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::string tokenizer_missing_;            // not empty: why there is none
  std::unique_ptr<ProteinEncoder> protein_;  // null: text
  std::string residue_of_;                   // the letter of each token id
  EncodingNotes notes_;
};

}  // namespace quintet

#endif  // QUINTET_ENGINE_RECORD_ENCODER_H_
