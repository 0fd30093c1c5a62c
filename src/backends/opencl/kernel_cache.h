// Compiled kernels on disk: one file per key, written at once or not at all, checked when read.
#ifndef QUINTET_BACKENDS_OPENCL_KERNEL_CACHE_H_
#define QUINTET_BACKENDS_OPENCL_KERNEL_CACHE_H_

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace quintet::opencl {

class KernelCache {
 public:
  // folder: made when first written to; empty: nothing is kept.
  explicit KernelCache(std::filesystem::path folder) : folder_(std::move(folder)) {}

  bool keeps() const { return !folder_.empty(); }

  // What was stored under a key; nothing where there is no such file, or one that is damaged,
  // incomplete or somebody else's. Neither call throws: a cache that fails is as good as none.
  std::optional<std::vector<unsigned char>> load(const std::string& key) const;
  void store(const std::string& key, const std::vector<unsigned char>& binary) const;

  std::filesystem::path file_of(const std::string& key) const;

 private:
  std::filesystem::path folder_;
};

}  // namespace quintet::opencl

#endif  // QUINTET_BACKENDS_OPENCL_KERNEL_CACHE_H_
