#include "weights/torch_zip.h"

#include <cstring>
#include <unordered_map>

#include "core/error.h"
#include "weights/torch_state.h"
#include "weights/zip_reader.h"

namespace quintet {
namespace {

using Bytes = std::span<const std::byte>;

// The entries below the archive's one folder, whose name is up to whoever saved it.
class Archive {
 public:
  Archive(Bytes bytes, const std::string& where) : where_(where) {
    const std::vector<ZipEntry> entries = read_stored_zip(bytes, where);
    if (entries.empty()) fail(ErrorKind::kFile, "{}: an empty zip archive", where);
    const std::string_view first = entries.front().name;
    const std::string_view folder = first.substr(0, first.find('/') + 1);
    for (const ZipEntry& entry : entries) {
      if (entry.name.substr(0, folder.size()) == folder) {
        entries_.emplace(entry.name.substr(folder.size()), entry.data);
      }
    }
  }

  const Bytes* find(std::string_view name) const {
    const auto found = entries_.find(name);
    return found == entries_.end() ? nullptr : &found->second;
  }

  Bytes get(const std::string& name) const {
    const Bytes* data = find(name);
    if (data == nullptr) {
      fail(ErrorKind::kFile, "{}: a zip archive without '{}', not one of torch.save", where_,
           printable(name));
    }
    return *data;
  }

 private:
  const std::string& where_;
  std::unordered_map<std::string_view, Bytes> entries_;
};

void check_byte_order(const Archive& archive, const std::string& where) {
  const Bytes* data = archive.find("byteorder");  // older versions did not write it
  if (data == nullptr) return;
  const std::string_view order(reinterpret_cast<const char*>(data->data()), data->size());
  if (order != "little") {
    fail(ErrorKind::kFile, "{}: byte order '{}', only little-endian files are read", where,
         printable(order));
  }
}

}  // namespace

bool is_torch_zip(Bytes bytes) {
  return bytes.size() >= 4 && std::memcmp(bytes.data(), "PK\3\4", 4) == 0;
}

TensorFile parse_torch_zip(Bytes bytes, const std::string& where) {
  const Archive archive(bytes, where);
  check_byte_order(archive, where);
  TorchState state = read_torch_state(archive.get("data.pkl"), where);
  std::vector<Bytes> storages;
  for (const TorchStorage& storage : state.storages) {
    const Bytes data = archive.get(fmt::format("data/{}", storage.key));
    if (data.size() != static_cast<uint64_t>(storage.bytes())) {
      fail(ErrorKind::kFile, "{}: storage '{}' has {} bytes, its pickle says {} x {} = {}", where,
           printable(storage.key), data.size(), storage.size, storage.type, storage.bytes());
    }
    storages.push_back(data);
  }
  return bind_storages(std::move(state), storages);
}

}  // namespace quintet
