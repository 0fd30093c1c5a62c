// Protein sequences to token ids, one row per residue.
#ifndef QUINTET_TOKENIZER_PROTEIN_H_
#define QUINTET_TOKENIZER_PROTEIN_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace quintet {

enum class ProteinPreset { kAuto, kProtT5, kProstT5Aa, kProstT53di, kAnkh, kNone };

struct ProteinOptions {
  ProteinPreset preset = ProteinPreset::kAuto;  // kAuto and kNone are resolved by the caller
  std::string rare_residues = "UZOB";           // mapped to X; not for 3Di
  std::string prefix = "";                      // empty: the preset's own
  bool stop_as_x = false;                       // a '*' inside becomes X instead of a rejection
};

struct EncodedProtein {
  std::vector<int32_t> tokens;  // prefix, residues, </s>
  int32_t begin = 0;            // tokens [begin, end) are the residues
  int32_t end = 0;
  int32_t changed = 0;    // letters whose case was changed or that were mapped to X
  int32_t dropped = 0;    // gaps, dots, blanks, a trailing stop
  bool stop_cut = false;  // a trailing '*' is among the dropped
  bool empty = false;     // rejected because no residue is left
  std::string rejected;   // not empty: why it cannot be used ("no residues", "'*' at residue 2")
};

// Encodes sequences of up to 2^31 letters with a table from letter to token, which the constructor
// takes from the tokenizer's own encoding. Residues are separate words where the tokenizer has a
// token for each ("▁A"), else bare letters. Letters are made upper case, for 3Di lower case; '-',
// '.', white space and one trailing '*' are dropped. Positions in messages count residues from 1.
class ProteinEncoder {
 public:
  // Throws Error(kUsage) where the vocabulary does not have what the preset needs.
  ProteinEncoder(const Tokenizer& tokenizer, const ProteinOptions& options);
  EncodedProtein encode(std::string_view residues) const;  // thread-safe
  ProteinPreset preset() const { return preset_; }

 private:
  struct Letter {
    int32_t id = -1;  // -1: not in the vocabulary
    bool is_changed = false;
    bool is_dropped = false;
  };

  void fill_letters(const Tokenizer& tokenizer, const ProteinOptions& options);
  void find_ends(const Tokenizer& tokenizer, const std::string& prefix);

  ProteinPreset preset_;
  bool stop_as_x_;
  bool separate_words_ = true;
  std::array<Letter, 256> letters_{};
  std::vector<int32_t> before_;  // prefix included
  std::vector<int32_t> after_;
};

// As --protein spells it: "auto", "prott5", ..., "none".
std::string_view preset_name(ProteinPreset preset);

// What `auto` means for this vocabulary: kProtT5 (a token for each residue that stands as a word,
// "▁A"), kAnkh (bare letters, no blanks), or kNone.
ProteinPreset detect_preset(const Tokenizer& tokenizer);

}  // namespace quintet

#endif  // QUINTET_TOKENIZER_PROTEIN_H_
