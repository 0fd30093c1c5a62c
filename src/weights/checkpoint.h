// A checkpoint folder's tensors by name, whatever files they stand in: model.safetensors, shards
// with an index, pytorch_model.bin (zip or legacy pickle), shards of those.
#ifndef QUINTET_WEIGHTS_CHECKPOINT_H_
#define QUINTET_WEIGHTS_CHECKPOINT_H_

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/host_view.h"

namespace quintet {

class Checkpoint {
 public:
  // Reads headers only; tensors stay in the mapped files. `path` is a folder. Where both kinds are
  // there, safetensors win. Throws Error(kFile / kIo) naming the file and what is wrong with it.
  static std::unique_ptr<Checkpoint> open(const std::filesystem::path& path);
  virtual ~Checkpoint() = default;

  const std::map<std::string, HostView, std::less<>>& tensors() const { return tensors_; }
  const HostView* find(std::string_view name) const;  // null where there is none
  // Names the checkpoint's index promises and no file holds -> the shard that should.
  const std::map<std::string, std::string, std::less<>>& missing() const { return missing_; }
  const std::string& format() const { return format_; }  // "safetensors, 3 files", for people
  size_t file_bytes() const { return file_bytes_; }
  const std::filesystem::path& folder() const { return folder_; }

 protected:
  std::filesystem::path folder_;
  std::string format_;
  size_t file_bytes_ = 0;
  std::vector<std::unique_ptr<FileMap>> files_;
  std::map<std::string, HostView, std::less<>> tensors_;
  std::map<std::string, std::string, std::less<>> missing_;
};

}  // namespace quintet

#endif  // QUINTET_WEIGHTS_CHECKPOINT_H_
