// Protein sequences to token ids, one row per residue.
#ifndef QUINTET_TOKENIZER_PROTEIN_H_
#define QUINTET_TOKENIZER_PROTEIN_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace quintet {

enum class ProteinPreset { kAuto, kProtT5, kProstT5Aa, kProstT53di, kAnkh, kNone };

struct ProteinOptions {
  ProteinPreset preset = ProteinPreset::kAuto;  // kAuto and kNone are resolved by the caller
  std::string rare_residues = "UZOB";           // mapped to X
  std::string prefix;                           // empty: the preset's own
};

struct EncodedProtein {
  std::vector<int32_t> tokens;  // prefix, residues, </s>
  int32_t begin = 0;            // tokens [begin, end) are the residues
  int32_t end = 0;
  int32_t changed = 0;   // letters upper-cased or mapped to X
  int32_t dropped = 0;   // gaps, dots, blanks, a trailing stop
  std::string rejected;  // not empty: why it cannot be used ("no residues", "'*' at residue 2")
};

class ProteinEncoder {
 public:
  // Throws Error(kUsage) where the vocabulary does not have what the preset needs.
  ProteinEncoder(const Tokenizer& tokenizer, ProteinOptions options);
  EncodedProtein encode(std::string_view residues) const;
  ProteinPreset preset() const { return preset_; }

 private:
  ProteinPreset preset_;
};

// What `auto` means for this vocabulary: kProtT5 ("▁A" pieces), kAnkh (bare letters), or kNone.
ProteinPreset detect_preset(const Tokenizer& tokenizer);

}  // namespace quintet

#endif  // QUINTET_TOKENIZER_PROTEIN_H_
