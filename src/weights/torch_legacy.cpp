#include "weights/torch_legacy.h"

#include <unordered_map>

#include "weights/byte_cursor.h"
#include "weights/pickle.h"
#include "weights/torch_state.h"

namespace quintet {
namespace {

using Bytes = std::span<const std::byte>;
using Kind = PickleValue::Kind;

constexpr std::string_view kMagic("\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 10);
constexpr int64_t kProtocol = 1001;

Pickle next_pickle(Bytes bytes, ByteCursor& cursor, const std::string& where) {
  Pickle pickle = read_pickle(bytes.subspan(cursor.position()), where);
  cursor.take(pickle.size);
  return pickle;
}

void check_head(Bytes bytes, ByteCursor& cursor, const std::string& where) {
  const Pickle magic = next_pickle(bytes, cursor, where);
  if (magic.at(magic.root).kind != Kind::kBigInt || magic.at(magic.root).text != kMagic) {
    fail(ErrorKind::kFile, "{}: a pickle, but not of torch.save; save the model's state_dict()",
         where);
  }
  const Pickle protocol = next_pickle(bytes, cursor, where);
  if (protocol.at(protocol.root).number != kProtocol) {
    fail(ErrorKind::kFile, "{}: protocol {} of torch.save, expected {}", where,
         protocol.at(protocol.root).number, kProtocol);
  }
  const Pickle system = next_pickle(bytes, cursor, where);
  const PickleValue& facts = system.at(system.root);
  for (size_t i = 0; facts.kind == Kind::kDict && i + 1 < facts.items.size(); i += 2) {
    const bool is_order = system.at(facts.items[i]).text == "little_endian";
    if (is_order && system.at(facts.items[i + 1]).number == 0) {
      fail(ErrorKind::kFile, "{}: saved on a big-endian machine; only little-endian files are read",
           where);
    }
  }
}

// The bytes of state.storages, which stand in the order of `keys`.
std::vector<Bytes> take_storages(ByteCursor& cursor, const Pickle& keys, const TorchState& state,
                                 const std::string& where) {
  std::unordered_map<std::string_view, size_t> by_key;
  for (size_t i = 0; i < state.storages.size(); ++i) by_key.emplace(state.storages[i].key, i);
  std::vector<Bytes> storages(state.storages.size());
  std::vector<bool> seen(state.storages.size(), false);
  for (const uint32_t item : keys.at(keys.root).items) {
    const std::string_view key = keys.at(item).text;
    const auto found = by_key.find(key);
    if (found == by_key.end() || seen[found->second]) {
      fail(ErrorKind::kFile, "{}: storage '{}' of no tensor, or listed twice", where,
           printable(key));
    }
    const TorchStorage& storage = state.storages[found->second];
    const auto size = cursor.number<int64_t>();
    if (size != storage.size) {
      fail(ErrorKind::kFile, "{}: storage '{}' has {} elements, the state dict says {}", where,
           printable(key), size, storage.size);
    }
    storages[found->second] = cursor.take(static_cast<uint64_t>(storage.bytes()));
    seen[found->second] = true;
  }
  for (size_t i = 0; i < seen.size(); ++i) {
    if (!seen[i]) {
      fail(ErrorKind::kFile, "{}: storage '{}' is not in the file", where,
           printable(state.storages[i].key));
    }
  }
  return storages;
}

}  // namespace

bool is_torch_legacy(Bytes bytes) {
  constexpr auto kProto = std::byte{0x80};
  return bytes.size() >= 2 && bytes[0] == kProto && bytes[1] <= std::byte{5};
}

TensorFile parse_torch_legacy(Bytes bytes, const std::string& where) {
  ByteCursor cursor(bytes, where);
  check_head(bytes, cursor, where);
  size_t pickle_size = 0;
  TorchState state = read_torch_state(bytes.subspan(cursor.position()), where, &pickle_size);
  cursor.take(pickle_size);
  const Pickle keys = next_pickle(bytes, cursor, where);
  if (keys.at(keys.root).kind != Kind::kList) {
    fail(ErrorKind::kFile, "{}: no list of storages after the state dict", where);
  }
  const std::vector<Bytes> storages = take_storages(cursor, keys, state, where);
  if (cursor.left() != 0) {
    fail(ErrorKind::kFile, "{}: {} bytes after the last storage", where, cursor.left());
  }
  return bind_storages(std::move(state), storages);
}

}  // namespace quintet
