#include "weights/shard_index.h"

#include <algorithm>
#include <system_error>

#include "core/error.h"
#include "core/json.h"
#include "weights/tensor_file.h"

namespace quintet {
namespace {

namespace fs = std::filesystem;

constexpr JsonLimits kLimits{.max_bytes = size_t{32} << 20, .max_depth = 16};

bool is_below(const fs::path& path, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first ==
         folder.end();
}

// `folder` and `target` are canonical. The Hugging Face cache keeps files in <model>/blobs and
// links to them from <model>/snapshots/<revision>, also from folders in there.
bool may_hold(const fs::path& folder, const fs::path& target) {
  if (is_below(target, folder)) return true;
  for (fs::path up = folder; up.has_relative_path(); up = up.parent_path()) {
    if (up.parent_path().filename() == "snapshots") {
      return is_below(target, up.parent_path().parent_path() / "blobs");
    }
  }
  return false;
}

[[noreturn]] void refuse(const fs::path& file, const std::string& shard, std::string_view why) {
  fail(ErrorKind::kFile, "{}: weight_map names shard '{}', which {}", file.string(),
       printable(shard), why);
}

fs::path resolve(const fs::path& file, const std::string& shard) {
  const fs::path name(shard);
  if (shard.empty() || shard.find('\0') != std::string::npos) refuse(file, shard, "is no name");
  if (name.is_absolute()) refuse(file, shard, "is an absolute path: refused");
  if (std::find(name.begin(), name.end(), "..") != name.end()) {
    refuse(file, shard, "leaves the folder: refused");
  }
  std::error_code error;
  const fs::path folder = fs::canonical(file.parent_path(), error);
  fs::path target = error ? fs::path() : fs::canonical(file.parent_path() / name, error);
  if (error) refuse(file, shard, "cannot be found: " + error.message());
  if (!may_hold(folder, target)) {
    refuse(
        file, shard,
        fmt::format("is a link out of the folder, to {}: refused; copy the files themselves into "
                    "one folder (cp -rL), or give the folder that holds them",
                    printable(target.string())));
  }
  return target;
}

}  // namespace

ShardIndex read_shard_index(const fs::path& file) {
  const nlohmann::json json = parse_json_file(file, kLimits);
  const auto map = json.is_object() ? json.find("weight_map") : json.end();
  if (!json.is_object() || map == json.end() || !map->is_object() || map->empty()) {
    fail(ErrorKind::kFile, "{}: no weight_map of tensor names to shards", file.string());
  }
  ShardIndex index;
  for (const auto& [tensor, shard] : map->items()) {
    if (!shard.is_string()) {
      fail(ErrorKind::kFile, "{}: weight_map['{}'] is not the name of a shard", file.string(),
           printable(tensor));
    }
    const auto& name = shard.get_ref<const std::string&>();
    if (!index.shards.contains(name)) index.shards.emplace(name, resolve(file, name));
    index.weight_map.emplace(tensor, name);
  }
  return index;
}

}  // namespace quintet
