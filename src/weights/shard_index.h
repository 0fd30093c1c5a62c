// The index of a checkpoint in several files (*.index.json): which shard holds which tensor.
#ifndef QUINTET_WEIGHTS_SHARD_INDEX_H_
#define QUINTET_WEIGHTS_SHARD_INDEX_H_

#include <filesystem>
#include <map>
#include <string>

namespace quintet {

struct ShardIndex {
  std::map<std::string, std::string, std::less<>> weight_map;        // tensor -> shard
  std::map<std::string, std::filesystem::path, std::less<>> shards;  // as named -> canonical path
};

// Every shard exists and lies in the index's folder or below it, symbolic links followed. One
// exception: in the hub's cache, where a snapshot's files are links to models--x/blobs, those are
// fine. Throws Error(kFile) naming the field otherwise.
ShardIndex read_shard_index(const std::filesystem::path& file);

}  // namespace quintet

#endif  // QUINTET_WEIGHTS_SHARD_INDEX_H_
