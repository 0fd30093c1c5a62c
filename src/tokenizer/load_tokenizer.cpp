// Which files of a folder make its tokenizer.
#include <filesystem>

#include "core/error.h"
#include "core/file_map.h"
#include "tokenizer/folder_tokenizer.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/tokenizer_json.h"

namespace quintet {
namespace {

constexpr size_t kMaxSpieceBytes = size_t{256} << 20;

std::string_view view(const FileMap& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.size()};
}

}  // namespace

std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& folder) {
  const std::filesystem::path json = folder / "tokenizer.json";
  if (std::filesystem::is_regular_file(json)) {
    const FileMap file(json);
    return parse_tokenizer_json(view(file), json.string());
  }
  const FolderTokens tokens = read_folder_tokens(folder);
  const std::filesystem::path spiece = folder / "spiece.model";
  if (std::filesystem::is_regular_file(spiece)) {
    const FileMap file(spiece);
    if (file.size() > kMaxSpieceBytes) {
      fail(ErrorKind::kFile, "{}: {} bytes, at most {} are read", spiece.string(), file.size(),
           kMaxSpieceBytes);
    }
    return make_t5_tokenizer(parse_spiece(view(file), spiece.string()), tokens, spiece.string());
  }
  if (tokens.tokenizer_class.starts_with("ByT5Tokenizer")) {
    return make_byt5_tokenizer(tokens, folder.string());
  }
  fail(ErrorKind::kFile,
       "{}: no tokenizer.json, no spiece.model, and no tokenizer_class \"ByT5Tokenizer\" in "
       "tokenizer_config.json or config.json; give input_ids, or copy the tokenizer's files here",
       folder.string());
}

}  // namespace quintet
