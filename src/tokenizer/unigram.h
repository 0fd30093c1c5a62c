// The unigram model: of all ways to cut a word into pieces of the vocabulary, the one with the
// largest sum of scores.
#ifndef QUINTET_TOKENIZER_UNIGRAM_H_
#define QUINTET_TOKENIZER_UNIGRAM_H_

#include <array>

#include "tokenizer/byte_trie.h"
#include "tokenizer/word_model.h"

namespace quintet {

struct UnigramPieces {
  std::vector<std::string> pieces;  // by id; of equal pieces the last counts
  std::vector<double> scores;
  std::optional<int32_t> unk_id;
  bool byte_fallback = false;  // unknown text as <0x00> ... <0xFF>, if those are pieces
};

class Unigram : public WordModel {
 public:
  // Throws Error(kFile) that begins with `where`.
  Unigram(UnigramPieces pieces, const std::string& where);

  // Linear in the word's length. A character that is no piece costs the lowest score less 10; runs
  // of them are one unknown token. Of equally good ways, the one whose last piece is longest. Takes
  // 4 bytes of memory for each byte of the word.
  void encode(std::string_view word, const TokenSink& sink) const override;
  int32_t vocab_size() const override { return static_cast<int32_t>(pieces_.pieces.size()); }
  std::optional<int32_t> find(std::string_view piece) const override { return trie_.find(piece); }
  std::string_view piece(int32_t id) const override;
  std::optional<int32_t> unk_id() const override { return pieces_.unk_id; }

 private:
  void find_last_steps(std::string_view word, std::vector<int32_t>& steps) const;
  size_t step_size(int32_t step) const;
  bool is_unknown(int32_t step) const;
  void emit_unknown(std::string_view word, size_t begin, size_t end, const TokenSink& sink) const;

  UnigramPieces pieces_;
  ByteTrie trie_;
  double unk_score_ = 0;
  size_t longest_ = 4;  // bytes of the longest piece or character
  std::array<int32_t, 256> byte_ids_{};
};

// {"type": "Unigram", "unk_id": id or null, "vocab": [[piece, score], ...], "byte_fallback": bool}
std::unique_ptr<WordModel> read_unigram(const nlohmann::json& spec, const std::string& where);

}  // namespace quintet

#endif  // QUINTET_TOKENIZER_UNIGRAM_H_
