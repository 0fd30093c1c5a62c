#include "tokenizer/protein.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "core/error.h"

namespace quintet {
namespace {

constexpr std::string_view kResidues = "ACDEFGHIKLMNPQRSTVWY";

bool is_letter(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }
char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool is_gap(char c) { return c == '-' || c == '.' || c == ' ' || (c >= '\t' && c <= '\r'); }

// The token of a letter that stands as a word of its own, resp. of the bare letter; none where the
// tokenizer makes anything else of it.
std::optional<int32_t> word_id(const Tokenizer& tokenizer, char letter) {
  const std::vector<int32_t> ids = tokenizer.encode(std::string{letter, ' ', letter}, false);
  const bool known = ids.size() == 2 && ids[0] == ids[1] && ids[0] != tokenizer.unk_id();
  return known ? std::optional(ids[0]) : std::nullopt;
}

std::optional<int32_t> bare_id(const Tokenizer& tokenizer, char letter) {
  const std::vector<int32_t> ids = tokenizer.encode({&letter, 1}, false);
  const bool known = ids.size() == 1 && ids[0] != tokenizer.unk_id();
  return known ? std::optional(ids[0]) : std::nullopt;
}

template <typename Find>
bool has_all(const Tokenizer& tokenizer, std::string_view letters, Find find) {
  return std::all_of(letters.begin(), letters.end(),
                     [&](char c) { return find(tokenizer, c).has_value(); });
}

std::string lower_all(std::string_view letters) {
  std::string result(letters);
  std::transform(result.begin(), result.end(), result.begin(), lower);
  return result;
}

std::string_view preset_prefix(ProteinPreset preset) {
  if (preset == ProteinPreset::kProstT5Aa) return "<AA2fold>";
  return preset == ProteinPreset::kProstT53di ? "<fold2AA>" : "";
}

// How a message shows a byte of the sequence.
std::string show(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte > 0x20 && byte < 0x7F ? fmt::format("'{}'", c) : fmt::format("byte 0x{:02X}", byte);
}

}  // namespace

std::string_view preset_name(ProteinPreset preset) {
  switch (preset) {
    case ProteinPreset::kAuto:
      return "auto";
    case ProteinPreset::kProtT5:
      return "prott5";
    case ProteinPreset::kProstT5Aa:
      return "prostt5-aa";
    case ProteinPreset::kProstT53di:
      return "prostt5-3di";
    case ProteinPreset::kAnkh:
      return "ankh";
    case ProteinPreset::kNone:
      break;
  }
  return "none";
}

ProteinPreset detect_preset(const Tokenizer& tokenizer) {
  if (has_all(tokenizer, kResidues, word_id)) {
    return ProteinPreset::kProtT5;
  }
  const std::vector<int32_t> blank = tokenizer.encode(" ", false);
  const bool knows_blank = !blank.empty() && blank[0] != tokenizer.unk_id();
  return !knows_blank && has_all(tokenizer, kResidues, bare_id) ? ProteinPreset::kAnkh
                                                                : ProteinPreset::kNone;
}

ProteinEncoder::ProteinEncoder(const Tokenizer& tokenizer, const ProteinOptions& options)
    : preset_(options.preset), stop_as_x_(options.stop_as_x) {
  if (preset_ == ProteinPreset::kAuto || preset_ == ProteinPreset::kNone) {
    fail(ErrorKind::kUsage, "--protein {} says nothing about how to encode a protein",
         preset_name(preset_));
  }
  const std::string letters =
      preset_ == ProteinPreset::kProstT53di ? lower_all(kResidues) : std::string(kResidues);
  separate_words_ = has_all(tokenizer, letters, word_id);
  if (!separate_words_ && !has_all(tokenizer, letters, bare_id)) {
    fail(ErrorKind::kUsage,
         "--protein {}: the vocabulary does not have a token for each of {}; is this a protein "
         "model? --protein none takes sequences as text",
         preset_name(preset_), letters);
  }
  fill_letters(tokenizer, options);
  find_ends(tokenizer,
            options.prefix.empty() ? std::string(preset_prefix(preset_)) : options.prefix);
}

void ProteinEncoder::fill_letters(const Tokenizer& tokenizer, const ProteinOptions& options) {
  const bool is_3di = preset_ == ProteinPreset::kProstT53di;
  for (const char rare : options.rare_residues) {
    if (!is_letter(rare)) {
      fail(ErrorKind::kUsage, "--rare-residues {}: {} is not a letter", options.rare_residues,
           show(rare));
    }
  }
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    Letter& letter = letters_[byte];
    letter.is_dropped = is_gap(c);
    if (!is_letter(c)) {
      continue;
    }
    char used = is_3di ? lower(c) : upper(c);
    const bool is_rare =
        !is_3di && std::any_of(options.rare_residues.begin(), options.rare_residues.end(),
                               [&](char rare) { return upper(rare) == used; });
    used = is_rare ? 'X' : used;
    letter.is_changed = used != c;
    letter.id =
        (separate_words_ ? word_id(tokenizer, used) : bare_id(tokenizer, used)).value_or(-1);
  }
  const bool needs_x = (!is_3di && !options.rare_residues.empty()) || stop_as_x_;
  if (needs_x && letters_['X'].id < 0 && !is_3di) {
    fail(ErrorKind::kUsage,
         "--rare-residues {}: the vocabulary has no X to map them to; give --rare-residues ''",
         options.rare_residues);
  }
}

void ProteinEncoder::find_ends(const Tokenizer& tokenizer, const std::string& prefix) {
  // The residue A (3Di: a) as the tokenizer sees it, with what it puts around a text.
  const char letter = preset_ == ProteinPreset::kProstT53di ? 'a' : 'A';
  const int32_t residue = letters_[static_cast<unsigned char>(letter)].id;
  const std::vector<int32_t> whole = tokenizer.encode({&letter, 1}, true);
  const auto at = std::find(whole.begin(), whole.end(), residue);
  if (at == whole.end()) {
    fail(ErrorKind::kUsage, "--protein {}: the tokenizer does not encode '{}' alone as one residue",
         preset_name(preset_), letter);
  }
  before_.assign(whole.begin(), at);
  after_.assign(at + 1, whole.end());
  if (prefix.empty()) {
    return;
  }
  const std::optional<int32_t> id = tokenizer.find(prefix);
  if (!id || *id == tokenizer.unk_id() ||
      tokenizer.encode(prefix, false) != std::vector<int32_t>{*id}) {
    fail(ErrorKind::kUsage, "--protein {}: the prefix '{}' is not a token of this vocabulary",
         preset_name(preset_), prefix);
  }
  before_.push_back(*id);
}

EncodedProtein ProteinEncoder::encode(std::string_view residues) const {
  EncodedProtein result;
  result.tokens.reserve(before_.size() + residues.size() + after_.size());
  result.tokens = before_;
  result.begin = static_cast<int32_t>(before_.size());
  size_t end = residues.size();
  while (end > 0 && is_gap(residues[end - 1])) {
    --end;
  }
  const size_t trailing_stop = end > 0 && residues[end - 1] == '*' ? end - 1 : residues.size();
  for (size_t i = 0; i < residues.size(); ++i) {
    const char c = residues[i];
    const bool is_x = c == '*' && stop_as_x_;
    const Letter& letter = letters_[is_x ? 'X' : static_cast<unsigned char>(c)];
    if (letter.is_dropped || i == trailing_stop) {
      ++result.dropped;
      result.stop_cut = result.stop_cut || i == trailing_stop;
      continue;
    }
    if (letter.id < 0) {
      const size_t position = result.tokens.size() - before_.size() + 1;
      result.rejected = fmt::format("{} at residue {}{}", show(c), position,
                                    c == '*' ? "" : " is not in the vocabulary");
      return result;
    }
    result.changed += letter.is_changed || is_x ? 1 : 0;
    result.tokens.push_back(letter.id);
  }
  result.end = static_cast<int32_t>(result.tokens.size());
  if (result.begin == result.end) {
    result.empty = true;
    result.rejected = "no residues";
  }
  result.tokens.insert(result.tokens.end(), after_.begin(), after_.end());
  return result;
}

}  // namespace quintet
