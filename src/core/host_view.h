// A tensor as it lies in a checkpoint file: somebody else's bytes with a type and a shape. Weights
// hands these out, ops::pack() turns them into what a device works with.
#ifndef QUINTET_CORE_HOST_VIEW_H_
#define QUINTET_CORE_HOST_VIEW_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "core/file_map.h"

namespace quintet {

struct HostView {
  std::string name;                 // as the checkpoint spells it, for messages
  const std::byte* data = nullptr;  // row-major, contiguous, of any alignment
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;     // [] is a scalar, [0, n] holds nothing
  const FileMap* file = nullptr;  // where the bytes live; null: plain memory

  int64_t rows() const { return shape.size() < 2 ? 1 : shape[0]; }
  int64_t cols() const { return shape.empty() ? 1 : shape.back(); }  // of a vector or a matrix
  size_t row_bytes() const { return static_cast<size_t>(cols()) * size_of(dtype); }
  const std::byte* row(int64_t i) const { return data + static_cast<size_t>(i) * row_bytes(); }

  // Gives the file's pages of rows [begin, begin + count) back after they were used.
  void release_rows(int64_t begin, int64_t count) const {
    if (file != nullptr) file->release(row(begin), static_cast<size_t>(count) * row_bytes());
  }
};

}  // namespace quintet

#endif  // QUINTET_CORE_HOST_VIEW_H_
