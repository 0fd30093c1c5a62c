// The byte-pair-encoding model: a word starts as its characters, and as long as there is a pair of
// neighbours that may be merged, the pair that stands first in the list of merges is.
#ifndef QUINTET_TOKENIZER_BPE_H_
#define QUINTET_TOKENIZER_BPE_H_

#include <array>
#include <utility>

#include "tokenizer/byte_trie.h"
#include "tokenizer/word_model.h"

namespace quintet {

struct BpeParts {
  std::vector<std::pair<std::string, int32_t>> vocab;       // in any order
  std::vector<std::pair<std::string, std::string>> merges;  // the first is merged first
  std::optional<std::string> unk_token;  // without one, characters outside the vocabulary are lost
  bool fuse_unk = false;                 // runs of them are one token
  bool byte_fallback = false;            // they become <0x00> ... <0xFF>, if those are pieces
  bool ignore_merges = false;            // a word that is a piece is that piece
};

class Bpe : public WordModel {
 public:
  // Throws Error(kFile) that begins with `where`.
  Bpe(BpeParts parts, const std::string& where);

  // O(n log n) for a word of n characters, with at most 24 bytes of memory for each.
  void encode(std::string_view word, const TokenSink& sink) const override;
  int32_t vocab_size() const override { return static_cast<int32_t>(pieces_.size()); }
  std::optional<int32_t> find(std::string_view piece) const override;
  std::string_view piece(int32_t id) const override;
  std::optional<int32_t> unk_id() const override;

 private:
  static constexpr int32_t kNone = -1;

  // Pieces are counted in the order of their ids, which need not be without holes.
  struct Merge {
    int32_t right = 0;
    uint32_t rank = 0;
    int32_t result = 0;
  };
  // Symbols of a word lie by the place of their first character. Of what a symbol covers only its
  // first and last place are up to date.
  struct Symbol {
    int32_t piece = kNone;  // kNone: part of the symbol to its left
    uint32_t extent = 1;    // characters
    uint32_t begin = 0;     // byte of the word
  };
  // Open merges, a heap: rank above, place of the left symbol below.
  using Queue = std::vector<uint64_t>;
  struct Scratch {
    std::vector<Symbol> symbols;
    Queue queue;
  };

  void read_merges(const BpeParts& parts, const std::string& where);
  const Merge* find_merge(int32_t left, int32_t right) const;
  void spell(std::string_view word, std::vector<Symbol>& symbols) const;
  void spell_unknown(std::string_view character, uint32_t begin, bool behind_unknown,
                     std::vector<Symbol>& symbols) const;
  void merge(Scratch& scratch) const;
  void enqueue(const std::vector<Symbol>& symbols, size_t left, Queue& queue) const;
  const Merge* open_merge(const std::vector<Symbol>& symbols, uint64_t entry) const;

  std::vector<std::pair<std::string, int32_t>> pieces_;  // by id
  ByteTrie trie_;
  std::vector<Merge> merges_;          // those of a left piece together, by right piece
  std::vector<uint32_t> first_merge_;  // by left piece, and the end
  int32_t unk_ = kNone;
  bool fuse_unk_;
  bool ignore_merges_;
  std::array<int32_t, 256> byte_pieces_{};
};

// {"type": "BPE", "vocab": {piece: id, ...}, "merges": ["a b", ...] or [["a", "b"], ...], ...}
std::unique_ptr<WordModel> read_bpe(const nlohmann::json& spec, const std::string& where);

// The merges of a merges.txt: one pair a line, a line "#version ..." is passed over. `where` is the
// file's name. Throws Error(kFile).
std::vector<std::pair<std::string, std::string>> parse_merges(std::string_view text,
                                                              const std::string& where);

// {piece: id, ...}, as in a vocab.json.
std::vector<std::pair<std::string, int32_t>> read_bpe_vocab(const nlohmann::json& vocab,
                                                            const std::string& where);

}  // namespace quintet

#endif  // QUINTET_TOKENIZER_BPE_H_
