#include "weights/checkpoint.h"

#include <system_error>
#include <utility>

#include "core/error.h"
#include "weights/registry.h"
#include "weights/shard_index.h"

namespace quintet {
namespace {

namespace fs = std::filesystem;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The row of the registry that reads `bytes`, among those that share the file name of `sibling`.
const WeightFormat& format_of(std::span<const std::byte> bytes, const WeightFormat& sibling,
                              const std::string& where) {
  if (text_of(bytes).starts_with("version https://git-lfs")) {
    fail(ErrorKind::kFile, "{}: a Git LFS pointer, not the weights; run 'git lfs pull'", where);
  }
  std::string names;
  for (const WeightFormat& format : weight_formats()) {
    if (format.file != sibling.file) continue;
    if (format.recognises(bytes)) return format;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", format.name);
  }
  fail(ErrorKind::kFile, "{}: none of the formats expected here ({}); is the file damaged?", where,
       names);
}

[[noreturn]] void no_weights(const fs::path& folder) {
  std::string wanted;
  for (const WeightFormat& format : weight_formats()) {
    if (wanted.find(format.index) != std::string::npos) continue;
    wanted += fmt::format("{}{}, {}", wanted.empty() ? "" : ", ", format.file, format.index);
  }
  std::string found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = printable(entry.path().filename().string());
    if (found.size() > 300) break;
    found += fmt::format("{}{}", found.empty() ? "" : ", ", name);
  }
  fail(ErrorKind::kFile, "{}: no weights; expected one of {}; the folder holds {}", folder.string(),
       wanted, found.empty() ? "nothing" : found);
}

}  // namespace

// Puts the tensors of one file after the other into a checkpoint.
class CheckpointBuilder {
 public:
  explicit CheckpointBuilder(const fs::path& folder) { checkpoint_->folder_ = folder; }

  std::unique_ptr<Checkpoint> build() {
    for (const WeightFormat& format : weight_formats()) {
      std::error_code error;
      if (const fs::path file = checkpoint_->folder_ / format.file; fs::exists(file, error)) {
        add(file, file, std::string(format.file), format);
        return finish();
      }
      if (const fs::path file = checkpoint_->folder_ / format.index; fs::exists(file, error)) {
        index_ = read_shard_index(file);
        for (const auto& [name, path] : index_.shards) {
          add(checkpoint_->folder_ / name, path, name, format);
        }
        return finish();
      }
    }
    no_weights(checkpoint_->folder_);
  }

 private:
  // `shown`: the path for messages, `path`: the one to open, `shard`: its name in the index.
  void add(const fs::path& shown, const fs::path& path, const std::string& shard,
           const WeightFormat& sibling) {
    auto map = std::make_unique<FileMap>(path, shown);
    const std::string where = shown.string();
    const WeightFormat& format = format_of(map->bytes(), sibling, where);
    format_name_ = format.name;
    TensorFile file = format.parse(map->bytes(), where);
    for (HostView& tensor : file.tensors) {
      tensor.file = map.get();
      place(std::move(tensor), shard, where);
    }
    for (auto& [name, why] : file.skipped) {
      checkpoint_->skipped_.insert_or_assign(std::move(name), fmt::format("{} in {}", why, shard));
    }
    checkpoint_->file_bytes_ += map->size();
    checkpoint_->files_.push_back(std::move(map));
  }

  // Of a name that several shards hold, the one the index points to counts.
  void place(HostView tensor, const std::string& shard, const std::string& where) {
    const auto listed = index_.weight_map.find(tensor.name);
    const bool is_listed = listed != index_.weight_map.end();
    auto& tensors = checkpoint_->tensors_;
    if (const auto known = tensors.find(tensor.name); known != tensors.end()) {
      if (!is_listed) {
        fail(ErrorKind::kFile, "{}: '{}' stands in another shard as well, the index names neither",
             where, printable(tensor.name));
      }
      if (listed->second == shard) known->second = std::move(tensor);
      return;
    }
    std::string name = tensor.name;
    tensors.emplace(std::move(name), std::move(tensor));
  }

  std::unique_ptr<Checkpoint> finish() {
    for (const auto& [name, shard] : index_.weight_map) {
      if (!checkpoint_->tensors_.contains(name) && !checkpoint_->skipped_.contains(name)) {
        checkpoint_->missing_.emplace(name, shard);
      }
    }
    const size_t n_files = checkpoint_->files_.size();
    checkpoint_->format_ =
        fmt::format("{}, {} file{}", format_name_, n_files, n_files == 1 ? "" : "s");
    return std::move(checkpoint_);
  }

  std::unique_ptr<Checkpoint> checkpoint_ = std::make_unique<Checkpoint>();
  ShardIndex index_;
  std::string_view format_name_;
};

std::unique_ptr<Checkpoint> Checkpoint::open(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    fail(ErrorKind::kIo, "{}: not a folder; a checkpoint is a folder with config.json and weights",
         path.string());
  }
  return CheckpointBuilder(path).build();
}

const HostView* Checkpoint::find(std::string_view name) const {
  if (const auto found = tensors_.find(name); found != tensors_.end()) return &found->second;
  if (skipped_.contains(name)) {
    fail(ErrorKind::kFile, "{}: {}; weights are read as float32, bfloat16 or float16",
         folder_.string(), why_absent(name));
  }
  return nullptr;
}

std::string Checkpoint::why_absent(std::string_view name) const {
  if (const auto found = skipped_.find(name); found != skipped_.end()) {
    return fmt::format("'{}' {}", printable(name), found->second);
  }
  if (const auto found = missing_.find(name); found != missing_.end()) {
    return fmt::format("'{}' is not in {}, where the index says it is", printable(name),
                       printable(found->second));
  }
  return fmt::format("no tensor '{}'", printable(name));
}

}  // namespace quintet
