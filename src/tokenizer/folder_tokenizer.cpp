#include "tokenizer/folder_tokenizer.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "core/error.h"
#include "tokenizer/byte_model.h"
#include "tokenizer/pipeline_tokenizer.h"
#include "tokenizer/unigram.h"

namespace quintet {
namespace {

constexpr int32_t kT5ExtraIds = 100;
constexpr int32_t kByT5ExtraIds = 125;
constexpr int32_t kT5UnkId = 2;

AddedToken plain_token(std::string content) {
  AddedToken token;
  token.content = std::move(content);
  return token;
}

std::string sentinel(int32_t n) { return fmt::format("<extra_id_{}>", n); }

// Collects tokens in order; of those with the same content the first counts.
class TokenList {
 public:
  void add(AddedToken token) {
    if (seen_.insert(token.content).second) {
      tokens_.push_back(std::move(token));
    }
  }
  void add_all(const std::vector<AddedToken>& tokens) {
    for (const AddedToken& token : tokens) {
      add(token);
    }
  }
  std::vector<AddedToken> take() { return std::move(tokens_); }

 private:
  std::unordered_set<std::string> seen_;
  std::vector<AddedToken> tokens_;
};

// A folder's own list of extra tokens, or else the control and user-defined pieces and
// <extra_id_n>.
std::vector<AddedToken> t5_extra_tokens(const Spiece& spiece, const FolderTokens& tokens,
                                        int32_t n_extra_ids) {
  if (tokens.extra) {
    return *tokens.extra;
  }
  std::vector<AddedToken> result;
  bool has_sentinels = false;
  for (const Spiece::Piece& piece : spiece.pieces) {
    if (piece.kind == Spiece::Kind::kControl || piece.kind == Spiece::Kind::kUserDefined) {
      result.push_back(plain_token(piece.text));
      has_sentinels = has_sentinels || piece.text.find("<extra_id_") != std::string::npos;
    }
  }
  for (int32_t n = 0; n < n_extra_ids && !has_sentinels; ++n) {
    result.push_back(plain_token(sentinel(n)));
  }
  return result;
}

std::vector<AddedToken> t5_added_tokens(const Spiece& spiece, const FolderTokens& tokens,
                                        int32_t n_extra_ids) {
  TokenList list;
  for (AddedToken token : tokens.added) {
    token.id.reset();  // the reference keeps their order only
    list.add(std::move(token));
  }
  for (const auto& [role, fallback] :
       {std::pair("bos_token", ""), std::pair("eos_token", "</s>"), std::pair("unk_token", "<unk>"),
        std::pair("sep_token", ""), std::pair("pad_token", "<pad>"), std::pair("cls_token", ""),
        std::pair("mask_token", "")}) {
    const auto given = std::find_if(tokens.named.begin(), tokens.named.end(),
                                    [&, &role = role](const auto& n) { return n.role == role; });
    list.add(given != tokens.named.end() ? given->token : plain_token(fallback));
  }
  list.add_all(t5_extra_tokens(spiece, tokens, n_extra_ids));
  return list.take();
}

std::unique_ptr<WordModel> t5_model(Spiece& spiece, int32_t n_extra_ids, const std::string& where) {
  UnigramPieces pieces;
  for (Spiece::Piece& piece : spiece.pieces) {
    pieces.pieces.push_back(std::move(piece.text));
    pieces.scores.push_back(piece.score);
  }
  for (int32_t n = n_extra_ids; n > 0; --n) {
    pieces.pieces.push_back(sentinel(n - 1));
    pieces.scores.push_back(0.0);
  }
  pieces.unk_id = kT5UnkId;
  return std::make_unique<Unigram>(std::move(pieces), where);
}

// Strips trailing white space and makes runs of spaces one mark, behind the character map.
std::unique_ptr<Normalizer> modern_normalizer(const std::string& where) {
  return make_normalizer(
      {{"type", "Sequence"},
       {"normalizers",
        {{{"type", "Strip"}, {"strip_left", false}, {"strip_right", true}},
         {{"type", "Replace"}, {"pattern", {{"Regex", " {2,}"}}}, {"content", "\xE2\x96\x81"}}}}},
      where);
}

class Both : public Normalizer {
 public:
  Both(std::unique_ptr<Normalizer> first, std::unique_ptr<Normalizer> second)
      : first_(std::move(first)), second_(std::move(second)) {}
  TracedText apply(TracedText text) const override {
    return second_->apply(first_ ? first_->apply(std::move(text)) : std::move(text));
  }

 private:
  std::unique_ptr<Normalizer> first_;  // may be null
  std::unique_ptr<Normalizer> second_;
};

}  // namespace

std::unique_ptr<Tokenizer> make_t5_tokenizer(Spiece spiece, const FolderTokens& tokens,
                                             const std::string& where) {
  const int32_t n_extra_ids = tokens.extra_ids.value_or(kT5ExtraIds);
  PipelineParts parts;
  parts.added_tokens = t5_added_tokens(spiece, tokens, n_extra_ids);
  parts.normalizer = make_charsmap_normalizer(spiece.charsmap, where);
  if (tokens.legacy) {
    parts.pre_tokenizer = make_t5_pre_tokenizer();
  } else {
    // A word is marked only where white space stands before it or at the text's beginning, so not
    // right behind an added token.
    parts.normalizer =
        std::make_unique<Both>(std::move(parts.normalizer), modern_normalizer(where));
    parts.pre_tokenizer = make_metaspace(PrependScheme::kFirst);
  }
  parts.model = t5_model(spiece, n_extra_ids, where);
  const std::string eos = tokens.name_of("eos_token", "</s>");
  const auto eos_id = parts.model->find(eos);
  if (!eos_id) {
    fail(ErrorKind::kFile, "{}: eos_token '{}' is not a piece", where, eos);
  }
  parts.post_template.after = {*eos_id};
  return std::make_unique<PipelineTokenizer>(std::move(parts), where);
}

std::unique_ptr<Tokenizer> make_byt5_tokenizer(const FolderTokens& tokens,
                                               const std::string& where) {
  PipelineParts parts;
  const std::vector<std::string> first_three = {tokens.name_of("pad_token", "<pad>"),
                                                tokens.name_of("eos_token", "</s>"),
                                                tokens.name_of("unk_token", "<unk>")};
  TokenList list;
  list.add_all(tokens.added);
  for (size_t id = 0; id < first_three.size(); ++id) {
    AddedToken token = plain_token(first_three[id]);
    token.lstrip = token.rstrip = true;
    for (const FolderTokens::Named& named : tokens.named) {
      if (!named.is_plain && named.token.content == token.content) token = named.token;
    }
    token.id = static_cast<int32_t>(id);
    list.add(std::move(token));
  }
  for (const FolderTokens::Named& named : tokens.named) {
    list.add(named.token);
  }
  if (tokens.extra || tokens.extra_of_map) {
    list.add_all(tokens.extra ? *tokens.extra : *tokens.extra_of_map);
  } else {
    for (int32_t n = 0; n < tokens.extra_ids.value_or(kByT5ExtraIds); ++n) {
      list.add(plain_token(sentinel(n)));
    }
  }
  parts.added_tokens = list.take();
  for (AddedToken& token : parts.added_tokens) {
    token.normalized = false;  // there is no normalizer: one search finds all
    token.strips_separators = true;
  }
  parts.model = make_byte_model(first_three);
  parts.post_template = {.before = {}, .after = {1}, .after_once = true};
  return std::make_unique<PipelineTokenizer>(std::move(parts), where);
}

}  // namespace quintet
