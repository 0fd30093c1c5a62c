// How far apart the rows of a matrix lie in host memory.
#ifndef QUINTET_CORE_ROW_STRIDE_H_
#define QUINTET_CORE_ROW_STRIDE_H_

#include <cstdint>

#include "core/dtype.h"

namespace quintet {

// Elements from one row to the next for matrices of `cols` columns: whole cache lines and one more,
// no multiple of a page, so that the rows of a tile do not meet in the same cache sets.
inline int64_t row_stride(int64_t cols, DType dtype = DType::kFloat32) {
  const int64_t in_line = 64 / static_cast<int64_t>(size_of(dtype));
  int64_t stride = (cols + in_line - 1) / in_line * in_line;
  if (stride >= 4 * in_line) stride += in_line;
  if (stride * static_cast<int64_t>(size_of(dtype)) % 4096 == 0) stride += in_line;
  return stride;
}

}  // namespace quintet

#endif  // QUINTET_CORE_ROW_STRIDE_H_
