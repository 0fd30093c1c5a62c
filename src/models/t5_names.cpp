#include "models/t5_names.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include "core/error.h"

namespace quintet {
namespace {

constexpr std::string_view kProbe = "block.0.layer.0.SelfAttention.q.weight";
constexpr std::string_view kEncoder = "encoder.";

constexpr std::string_view kDecoder = "decoder.";

// What stands before kProbe in the names of the checkpoint: of decoders, or of all else.
std::set<std::string> stack_prefixes(const Checkpoint& checkpoint, bool decoders) {
  std::set<std::string> prefixes;
  const auto consider = [&](std::string_view name) {
    if (!name.ends_with(kProbe)) return;
    const std::string_view prefix = name.substr(0, name.size() - kProbe.size());
    if (prefix.ends_with(kDecoder) != decoders || (!prefix.empty() && prefix.back() != '.')) return;
    prefixes.emplace(prefix);
  };
  for (const auto& [name, view] : checkpoint.tensors()) consider(name);
  for (const auto& [name, shard] : checkpoint.missing()) consider(name);
  return prefixes;
}

// `usual` where it is there, or the only one; empty where there is none.
std::optional<std::string> choose_stack(const Checkpoint& checkpoint, std::string_view usual) {
  const std::set<std::string> prefixes = stack_prefixes(checkpoint, usual == kDecoder);
  if (prefixes.empty()) return std::nullopt;
  if (prefixes.contains(std::string(usual))) return std::string(usual);
  if (prefixes.size() > 1) {
    const std::string_view kind = usual.substr(0, usual.size() - 1);
    fail(ErrorKind::kFile, "{}: several {}s, under '{}', expected one, or one under '{}'",
         checkpoint.folder().string(), kind, fmt::join(prefixes, "', '"), usual);
  }
  return *prefixes.begin();
}

// What stands before the stack's usual name.
std::string root_of(const std::string& stack, std::string_view usual) {
  return stack.ends_with(usual) ? stack.substr(0, stack.size() - usual.size()) : stack;
}

// The first of `names` that the checkpoint has, or else `usual`.
std::string first_of(const Checkpoint& checkpoint, const std::vector<std::string>& names,
                     const std::string& usual) {
  for (const std::string& name : names) {
    if (checkpoint.tensors().contains(name)) return name;
  }
  return usual;
}

std::vector<std::string> tables_of(const T5DecoderNames& names) {
  return {names.stack + "embed_tokens.weight", names.root + "shared.weight",
          names.root + "encoder.embed_tokens.weight", names.root + "lm_head.weight"};
}

}  // namespace

std::string t5_block_name(int64_t block) { return fmt::format("block.{}.", block); }

bool is_t5_block_matrix(const std::string& stack, const std::string& name) {
  return name.starts_with(stack + "block.") && !name.ends_with("relative_attention_bias.weight");
}

std::vector<std::string> embedding_names(const std::string& root, const std::string& stack) {
  // The encoder's own table counts first: where a file holds both and they differ, the original
  // looks up in that one.
  return {stack + "embed_tokens.weight", root + "shared.weight",
          root + "decoder.embed_tokens.weight", root + "lm_head.weight"};
}

T5EncoderNames find_t5_encoder(const Checkpoint& checkpoint) {
  T5EncoderNames names;
  names.stack = choose_stack(checkpoint, kEncoder).value_or(std::string(kEncoder));
  names.root = root_of(names.stack, kEncoder);
  names.embedding =
      first_of(checkpoint, embedding_names(names.root, names.stack), names.root + "shared.weight");
  return names;
}

T5DecoderNames find_t5_decoder(const Checkpoint& checkpoint) {
  const auto stack = choose_stack(checkpoint, kDecoder);
  if (!stack) {
    fail(ErrorKind::kFile,
         "{}: no decoder, expected '{}{}'; from an encoder alone, take embeddings",
         checkpoint.folder().string(), kDecoder, kProbe);
  }
  T5DecoderNames names{
      .root = root_of(*stack, kDecoder), .stack = *stack, .embedding = "", .head = ""};
  const std::string shared = names.root + "shared.weight";
  const std::vector<std::string> tables = tables_of(names);
  names.embedding = first_of(checkpoint, tables, shared);
  // A head of its own counts whatever the config says of tying.
  names.head = first_of(checkpoint,
                        {names.root + "lm_head.weight", shared, tables.front(), tables[2]}, shared);
  return names;
}

bool is_expected_unused(const T5EncoderNames& names, const std::string& name) {
  const auto tables = embedding_names(names.root, names.stack);
  if (std::find(tables.begin(), tables.end(), name) != tables.end()) return true;
  return name.starts_with(names.root + "decoder.") &&
         name.find("EncDecAttention.relative_attention_bias") == std::string::npos;
}

bool is_expected_unused(const T5DecoderNames& names, const std::string& name) {
  const auto tables = tables_of(names);
  if (std::find(tables.begin(), tables.end(), name) != tables.end()) return true;
  return name.starts_with(names.root + "encoder.");
}

}  // namespace quintet
