#include "tokenizer/folder_tokens.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <utility>

#include "core/json.h"
#include "tokenizer/json_fields.h"

namespace quintet {
namespace {

using nlohmann::json;

constexpr int32_t kMaxExtraIds = 1'000'000;
constexpr std::array kRoles = {"bos_token", "eos_token", "unk_token", "sep_token",
                               "pad_token", "cls_token", "mask_token"};

// The object in `folder / name`, null where there is no such file.
json read_object(const std::filesystem::path& folder, const char* name) {
  const std::filesystem::path path = folder / name;
  if (!std::filesystem::is_regular_file(path)) {
    return {};
  }
  json object = parse_json_file(path);
  if (!object.is_object()) {
    fail(ErrorKind::kFile, "{}: an object expected", path.string());
  }
  return object;
}

// A token is given as a string, or as an object with its properties.
AddedToken read_token(const json& value, bool special, const std::string& where) {
  AddedToken token;
  token.special = special;
  if (value.is_string()) {
    token.content = value.get<std::string>();
    token.normalized = !special;
    return token;
  }
  token.content = require_string(value, "content", where);
  token.single_word = bool_or(value, "single_word", false, where);
  token.lstrip = bool_or(value, "lstrip", false, where);
  token.rstrip = bool_or(value, "rstrip", false, where);
  token.normalized = bool_or(value, "normalized", !special, where);
  return token;
}

std::vector<AddedToken> read_list(const json& list, const std::string& where) {
  std::vector<AddedToken> tokens;
  for (const json& value : list) {
    tokens.push_back(read_token(value, true, where));
  }
  return tokens;
}

// Sets the named tokens that `file` has; a later file overrides an earlier one.
void read_named(const json& file, const std::string& where, FolderTokens& result) {
  for (const char* role : kRoles) {
    const json& value = member(file, role);
    if (value.is_null()) {
      continue;
    }
    FolderTokens::Named named{role, read_token(value, true, where + ": " + role),
                              value.is_string()};
    const auto old = std::find_if(result.named.begin(), result.named.end(),
                                  [&](const auto& known) { return known.role == role; });
    if (old == result.named.end()) {
      result.named.push_back(std::move(named));
    } else {
      *old = std::move(named);
    }
  }
}

// {"128": {"content": ...}, ...}
void read_added_decoder(const json& decoder, const std::string& where, FolderTokens& result) {
  if (!decoder.is_object()) {
    fail(ErrorKind::kFile, "{}: an object expected", where);
  }
  std::map<int32_t, AddedToken> by_id;
  for (const auto& [key, value] : decoder.items()) {
    int32_t id = -1;
    const auto parsed = std::from_chars(key.data(), key.data() + key.size(), id);
    if (parsed.ec != std::errc() || parsed.ptr != key.data() + key.size() || id < 0) {
      fail(ErrorKind::kFile, "{}: '{}' is not a token id", where, key.substr(0, 40));
    }
    by_id[id] = read_token(value, bool_or(value, "special", false, where), where);
  }
  for (auto& [id, token] : by_id) {
    token.id = id;
    result.added.push_back(std::move(token));
  }
}

// {"<AA2fold>": 149, ...}
void read_added_tokens(const json& file, const std::string& where, FolderTokens& result) {
  std::map<int32_t, AddedToken> by_id;
  for (const auto& [content, id] : file.items()) {
    const auto is_it = [&, &content = content](const AddedToken& t) {
      return t.content == content;
    };
    const bool special =
        std::any_of(result.named.begin(), result.named.end(),
                    [&](const auto& named) { return is_it(named.token); }) ||
        (result.extra && std::any_of(result.extra->begin(), result.extra->end(), is_it));
    AddedToken token;
    token.content = content;
    token.normalized = !special;
    token.special = special;
    token.id = require_id(id, content.substr(0, 40).c_str(), where);
    by_id[*token.id] = std::move(token);
  }
  for (auto& [id, token] : by_id) {
    result.added.push_back(std::move(token));
  }
}

void read_extra_ids(const json& config, const std::string& where, FolderTokens& result) {
  const json& value = member(config, "extra_ids");
  if (value.is_null()) {
    return;
  }
  const int32_t n = require_id(value, "extra_ids", where);
  if (n > kMaxExtraIds) {
    fail(ErrorKind::kFile, "{}: 'extra_ids' is {}, at most {} are accepted", where, n,
         kMaxExtraIds);
  }
  result.extra_ids = n;
}

// additional_special_tokens, the older name, counts where the newer one is missing or empty. Null
// counts as a list: the tokens that a class would add by itself are then not added either.
std::optional<std::vector<AddedToken>> read_extra(const json& file, const std::string& where) {
  const json& newer = member(file, "extra_special_tokens");
  const bool use_newer =
      newer.is_array() && (!newer.empty() || !file.contains("additional_special_tokens"));
  if (use_newer) {
    return read_list(newer, where + ": extra_special_tokens");
  }
  if (!file.is_object() || !file.contains("additional_special_tokens")) {
    return std::nullopt;
  }
  const json& older = member(file, "additional_special_tokens");
  return older.is_array() ? read_list(older, where + ": additional_special_tokens")
                          : std::vector<AddedToken>();
}

CleanUp clean_up_of(const json& config, const std::string& where) {
  return {.by_default = bool_or(config, "clean_up_tokenization_spaces", false, where),
          .of_bpe = bool_or(
              config, "clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output",
              false, where)};
}

}  // namespace

std::string FolderTokens::name_of(std::string_view role, std::string_view fallback) const {
  for (const Named& known : named) {
    if (known.role == role) {
      return known.token.content;
    }
  }
  return std::string(fallback);
}

CleanUp read_clean_up(const std::filesystem::path& folder) {
  return clean_up_of(read_object(folder, "tokenizer_config.json"),
                     (folder / "tokenizer_config.json").string());
}

FolderTokens read_folder_tokens(const std::filesystem::path& folder) {
  FolderTokens result;
  const json config = read_object(folder, "tokenizer_config.json");
  const std::string where = (folder / "tokenizer_config.json").string();
  read_named(config, where, result);
  read_extra_ids(config, where, result);
  result.extra = read_extra(config, where);
  result.legacy = bool_or(config, "legacy", true, where);
  result.add_prefix_space = bool_or(config, "add_prefix_space", false, where);
  result.add_bos_token = bool_or(config, "add_bos_token", false, where);
  result.add_eos_token = bool_or(config, "add_eos_token", false, where);
  result.clean_up = clean_up_of(config, where);
  if (const json& decoder = member(config, "added_tokens_decoder"); !decoder.is_null()) {
    read_added_decoder(decoder, where + ": added_tokens_decoder", result);
  } else {
    const std::string map_file = (folder / "special_tokens_map.json").string();
    const json map = read_object(folder, "special_tokens_map.json");
    read_named(map, map_file, result);
    result.extra_of_map = read_extra(map, map_file);
    read_added_tokens(read_object(folder, "added_tokens.json"),
                      (folder / "added_tokens.json").string(), result);
  }
  const json model_config = read_object(folder, "config.json");
  for (const json* file : {&config, &model_config}) {
    const json& name = member(*file, "tokenizer_class");
    if (name.is_string() && result.tokenizer_class.empty()) {
      result.tokenizer_class = name.get<std::string>();
    }
  }
  return result;
}

}  // namespace quintet
