#include "tokenizer/word_level.h"

#include <unordered_map>
#include <utility>

#include "tokenizer/json_fields.h"

namespace quintet {
namespace {

class WordLevel : public WordModel {
 public:
  WordLevel(std::unordered_map<std::string, int32_t> ids, const std::string& unk_token)
      : ids_(std::move(ids)) {
    unk_id_ = find(unk_token);
    for (const auto& [word, id] : ids_) {
      words_.emplace(id, word);
    }
  }

  void encode(std::string_view word, const TokenSink& sink) const override {
    const std::optional<int32_t> id = find(word);
    if (!id && !unk_id_) {
      fail(ErrorKind::kRecord, "'{}' is not in the vocabulary, which has no unknown token",
           word.substr(0, 40));
    }
    sink({id ? *id : *unk_id_, 0, word.size()});
  }
  int32_t vocab_size() const override { return static_cast<int32_t>(ids_.size()); }
  std::optional<int32_t> find(std::string_view piece) const override {
    const auto found = ids_.find(std::string(piece));
    return found == ids_.end() ? std::nullopt : std::optional(found->second);
  }
  std::string_view piece(int32_t id) const override {
    const auto found = words_.find(id);
    return found == words_.end() ? std::string_view() : found->second;
  }
  std::optional<int32_t> unk_id() const override { return unk_id_; }

 private:
  std::unordered_map<std::string, int32_t> ids_;
  std::unordered_map<int32_t, std::string_view> words_;  // into ids_
  std::optional<int32_t> unk_id_;
};

}  // namespace

std::unique_ptr<WordModel> read_word_level(const nlohmann::json& spec, const std::string& where) {
  const nlohmann::json& vocab = member(spec, "vocab");
  if (!vocab.is_object() || vocab.empty() || vocab.size() > kMaxPieces) {
    fail(ErrorKind::kFile, "{}: 'vocab' must be an object of 1 ... {} words", where, kMaxPieces);
  }
  std::unordered_map<std::string, int32_t> ids;
  ids.reserve(vocab.size());
  for (const auto& [word, id] : vocab.items()) {
    ids.emplace(word, require_id(id, word.substr(0, 40).c_str(), where));
  }
  return std::make_unique<WordLevel>(std::move(ids), require_string(spec, "unk_token", where));
}

}  // namespace quintet
