// Which files of a folder make its tokenizer.
#include <filesystem>

#include "core/error.h"
#include "core/file_map.h"
#include "core/json.h"
#include "tokenizer/folder_tokenizer.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/tokenizer_json.h"

namespace quintet {
namespace {

constexpr size_t kMaxFileBytes = size_t{256} << 20;

std::string_view view(const FileMap& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.size()};
}

bool is_there(const std::filesystem::path& path) { return std::filesystem::is_regular_file(path); }

std::string_view bounded_view(const FileMap& file, const std::filesystem::path& path) {
  if (file.size() > kMaxFileBytes) {
    fail(ErrorKind::kFile, "{}: {} bytes, at most {} are read", path.string(), file.size(),
         kMaxFileBytes);
  }
  return view(file);
}

// vocab.json and merges.txt belong to several classes, which do not put the same around a text.
std::unique_ptr<Tokenizer> load_gpt2(const std::filesystem::path& vocab,
                                     const std::filesystem::path& merges,
                                     const FolderTokens& tokens) {
  if (!tokens.tokenizer_class.empty() && !tokens.tokenizer_class.starts_with("GPT2Tokenizer")) {
    fail(ErrorKind::kFile,
         "{}: a {}, of which this program needs a tokenizer.json; of vocab.json and merges.txt it "
         "reads GPT2Tokenizer",
         vocab.parent_path().string(), tokens.tokenizer_class);
  }
  const FileMap file(merges);
  BpeParts parts;
  parts.vocab = read_bpe_vocab(parse_json_file(vocab), vocab.string());
  parts.merges = parse_merges(bounded_view(file, merges), merges.string());
  return make_gpt2_tokenizer(std::move(parts), tokens, merges.string());
}

}  // namespace

std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& folder) {
  const std::filesystem::path json = folder / "tokenizer.json";
  if (is_there(json)) {
    const FileMap file(json);
    return parse_tokenizer_json(view(file), json.string(), read_clean_up(folder));
  }
  const FolderTokens tokens = read_folder_tokens(folder);
  const std::filesystem::path spiece = folder / "spiece.model";
  if (is_there(spiece)) {
    const FileMap file(spiece);
    return make_t5_tokenizer(parse_spiece(bounded_view(file, spiece), spiece.string()), tokens,
                             spiece.string());
  }
  const std::filesystem::path vocab = folder / "vocab.json";
  const std::filesystem::path merges = folder / "merges.txt";
  if (is_there(vocab) && is_there(merges)) {
    return load_gpt2(vocab, merges, tokens);
  }
  if (tokens.tokenizer_class.starts_with("ByT5Tokenizer")) {
    return make_byt5_tokenizer(tokens, folder.string());
  }
  fail(ErrorKind::kFile,
       "{}: no tokenizer.json, no spiece.model, no vocab.json with merges.txt, and no "
       "tokenizer_class \"ByT5Tokenizer\" in tokenizer_config.json or config.json; give input_ids, "
       "or copy the tokenizer's files here",
       folder.string());
}

}  // namespace quintet
