#include "tokenizer/folder_tokenizer.h"

#include <algorithm>
#include <array>
#include <span>
#include <unordered_set>
#include <utility>

#include "core/error.h"
#include "tokenizer/byte_level.h"
#include "tokenizer/byte_model.h"
#include "tokenizer/pipeline_tokenizer.h"
#include "tokenizer/unigram.h"

namespace quintet {
namespace {

constexpr int32_t kT5ExtraIds = 100;
constexpr int32_t kByT5ExtraIds = 125;
constexpr int32_t kT5UnkId = 2;
constexpr const char* kEndOfText = "<|endoftext|>";

AddedToken plain_token(std::string content) {
  AddedToken token;
  token.content = std::move(content);
  token.special = true;
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

// What a class names a token that the folder does not; "" for none.
struct DefaultToken {
  const char* role;
  const char* content;
};

// In the order in which the reference adds them.
constexpr std::array<DefaultToken, 7> kT5Tokens = {{{"bos_token", ""},
                                                    {"eos_token", "</s>"},
                                                    {"unk_token", "<unk>"},
                                                    {"sep_token", ""},
                                                    {"pad_token", "<pad>"},
                                                    {"cls_token", ""},
                                                    {"mask_token", ""}}};
constexpr std::array<DefaultToken, 7> kGpt2Tokens = {{{"bos_token", kEndOfText},
                                                      {"eos_token", kEndOfText},
                                                      {"unk_token", kEndOfText},
                                                      {"sep_token", ""},
                                                      {"pad_token", ""},
                                                      {"cls_token", ""},
                                                      {"mask_token", ""}}};

// The folder's added tokens, then the named ones, then `extra`.
std::vector<AddedToken> all_added_tokens(const FolderTokens& tokens,
                                         std::span<const DefaultToken> defaults,
                                         const std::vector<AddedToken>& extra) {
  TokenList list;
  for (AddedToken token : tokens.added) {
    token.id.reset();  // the reference keeps their order only
    list.add(std::move(token));
  }
  for (const auto& [role, content] : defaults) {
    const auto given = std::find_if(tokens.named.begin(), tokens.named.end(),
                                    [&, &role = role](const auto& n) { return n.role == role; });
    list.add(given != tokens.named.end() ? given->token : plain_token(content));
  }
  list.add_all(extra);
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
  parts.added_tokens =
      all_added_tokens(tokens, kT5Tokens, t5_extra_tokens(spiece, tokens, n_extra_ids));
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
  parts.decoder = make_metaspace_decoder("\xE2\x96\x81", true);
  parts.clean_up = tokens.clean_up.applies_to(false);
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
  parts.decoder = make_byt5_decoder();
  parts.clean_up = tokens.clean_up.applies_to(false);
  return std::make_unique<PipelineTokenizer>(std::move(parts), where);
}

std::unique_ptr<Tokenizer> make_gpt2_tokenizer(BpeParts bpe, const FolderTokens& tokens,
                                               const std::string& where) {
  PipelineParts parts;
  const std::vector<AddedToken> extra = tokens.extra          ? *tokens.extra
                                        : tokens.extra_of_map ? *tokens.extra_of_map
                                                              : std::vector<AddedToken>();
  parts.added_tokens = all_added_tokens(tokens, kGpt2Tokens, extra);
  parts.pre_tokenizer = make_byte_level(tokens.add_prefix_space, true);
  parts.model = std::make_unique<Bpe>(std::move(bpe), where);
  parts.decoder = make_byte_level_decoder();
  parts.clean_up = tokens.clean_up.applies_to(true);
  const AddedTokens added(parts.added_tokens, *parts.model, nullptr, where);
  const auto id_of = [&](const char* role) {
    const std::string name = tokens.name_of(role, kEndOfText);
    if (const auto id = added.find(name)) return *id;
    fail(ErrorKind::kFile, "{}: {} '{}' is not a token", where, role, name.substr(0, 60));
  };
  if (tokens.add_bos_token) parts.post_template.before = {id_of("bos_token")};
  if (tokens.add_eos_token) parts.post_template.after = {id_of("eos_token")};
  return std::make_unique<PipelineTokenizer>(std::move(parts), where);
}

}  // namespace quintet
