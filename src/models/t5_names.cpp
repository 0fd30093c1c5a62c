#include "models/t5_names.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "core/error.h"

namespace quintet {
namespace {

constexpr std::string_view kProbe = "block.0.layer.0.SelfAttention.q.weight";
constexpr std::string_view kEncoder = "encoder.";

// What stands before kProbe in the names of the checkpoint, decoders left out.
std::set<std::string> stack_prefixes(const Checkpoint& checkpoint) {
  std::set<std::string> prefixes;
  const auto consider = [&](std::string_view name) {
    if (!name.ends_with(kProbe)) return;
    const std::string_view prefix = name.substr(0, name.size() - kProbe.size());
    if (prefix.ends_with("decoder.") || (!prefix.empty() && prefix.back() != '.')) return;
    prefixes.emplace(prefix);
  };
  for (const auto& [name, view] : checkpoint.tensors()) consider(name);
  for (const auto& [name, shard] : checkpoint.missing()) consider(name);
  return prefixes;
}

std::string choose_stack(const Checkpoint& checkpoint) {
  const std::set<std::string> prefixes = stack_prefixes(checkpoint);
  if (prefixes.empty() || prefixes.contains(std::string(kEncoder))) return std::string(kEncoder);
  if (prefixes.size() > 1) {
    fail(ErrorKind::kFile,
         "{}: several encoders, under '{}', expected one, or one under 'encoder.'",
         checkpoint.folder().string(), fmt::join(prefixes, "', '"));
  }
  return *prefixes.begin();
}

}  // namespace

std::vector<std::string> embedding_names(const std::string& root, const std::string& stack) {
  // The encoder's own table counts first: where a file holds both and they differ, the original
  // looks up in that one.
  return {stack + "embed_tokens.weight", root + "shared.weight",
          root + "decoder.embed_tokens.weight", root + "lm_head.weight"};
}

T5EncoderNames find_t5_encoder(const Checkpoint& checkpoint) {
  T5EncoderNames names;
  names.stack = choose_stack(checkpoint);
  names.root = names.stack.ends_with(kEncoder)
                   ? names.stack.substr(0, names.stack.size() - kEncoder.size())
                   : names.stack;
  names.embedding = names.root + "shared.weight";
  for (const std::string& name : embedding_names(names.root, names.stack)) {
    if (checkpoint.tensors().contains(name)) {
      names.embedding = name;
      break;
    }
  }
  return names;
}

bool is_expected_unused(const T5EncoderNames& names, const std::string& name) {
  const auto tables = embedding_names(names.root, names.stack);
  if (std::find(tables.begin(), tables.end(), name) != tables.end()) return true;
  return name.starts_with(names.root + "decoder.") &&
         name.find("EncDecAttention.relative_attention_bias") == std::string::npos;
}

}  // namespace quintet
