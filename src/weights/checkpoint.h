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
  // there, safetensors win; where a whole file and shards are there, the whole file. Throws
  // Error(kFile / kIo) naming the file and what is wrong with it.
  static std::unique_ptr<Checkpoint> open(const std::filesystem::path& path);
  virtual ~Checkpoint() = default;

  // float32, bfloat16 and float16 tensors.
  const std::map<std::string, HostView, std::less<>>& tensors() const { return tensors_; }
  // Null where there is none. Throws Error(kFile) for one of skipped(): whoever asks would go wrong
  // without it.
  const HostView* find(std::string_view name) const;
  // Tensors of other types (integer buffers, float64, ...), which nobody can use -> why.
  const std::map<std::string, std::string, std::less<>>& skipped() const { return skipped_; }
  // Names the checkpoint's index promises and no file holds -> the shard that should.
  const std::map<std::string, std::string, std::less<>>& missing() const { return missing_; }
  // For the message about a tensor that is needed and not there, what is known about it:
  // "'x' is not in model-00002-of-00003.safetensors, where the index says it is".
  std::string why_absent(std::string_view name) const;

  const std::string& format() const { return format_; }  // "safetensors, 3 files", for people
  size_t file_bytes() const { return file_bytes_; }
  const std::filesystem::path& folder() const { return folder_; }

 protected:
  friend class CheckpointBuilder;

  std::filesystem::path folder_;
  std::string format_;
  size_t file_bytes_ = 0;
  std::vector<std::unique_ptr<FileMap>> files_;
  std::map<std::string, HostView, std::less<>> tensors_;
  std::map<std::string, std::string, std::less<>> skipped_;
  std::map<std::string, std::string, std::less<>> missing_;
};

}  // namespace quintet

#endif  // QUINTET_WEIGHTS_CHECKPOINT_H_
