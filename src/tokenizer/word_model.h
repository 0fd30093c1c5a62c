// What turns one word into token ids. Each model of tokenizer.json ("Unigram", "WordLevel", ...) is
// one implementation in a file of its own; model_registry.cpp knows them by name.
#ifndef QUINTET_TOKENIZER_WORD_MODEL_H_
#define QUINTET_TOKENIZER_WORD_MODEL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace quintet {

struct WordToken {
  int32_t id = 0;
  size_t begin = 0;  // bytes [begin, end) of the word
  size_t end = 0;
};

using TokenSink = std::function<void(const WordToken&)>;

class WordModel {
 public:
  virtual ~WordModel() = default;
  // Hands the tokens of `word`, valid UTF-8 and not empty, to `sink`. Throws Error(kRecord) where
  // it has a character outside the vocabulary and there is no unknown token. Thread-safe.
  virtual void encode(std::string_view word, const TokenSink& sink) const = 0;
  virtual int32_t vocab_size() const = 0;
  virtual std::optional<int32_t> find(std::string_view piece) const = 0;
  virtual std::string_view piece(int32_t id) const = 0;  // "" where there is none
  virtual std::optional<int32_t> unk_id() const = 0;
};

// Limits on vocabularies from files. The length of pieces bounds the work per byte of text.
inline constexpr size_t kMaxPieces = 10'000'000;
inline constexpr size_t kMaxPieceBytes = 4096;

// Reads the "model" of a tokenizer.json. Throws Error(kFile), naming file and component.
std::unique_ptr<WordModel> make_word_model(const nlohmann::json& spec, const std::string& where);

}  // namespace quintet

#endif  // QUINTET_TOKENIZER_WORD_MODEL_H_
