// A matrix on a device: rows x cols, row-major, rows `stride` elements apart. A Tensor is a view
// that shares its buffer; rows() and cols views cost nothing. Vectors are matrices of one row.
#ifndef QUINTET_CORE_TENSOR_H_
#define QUINTET_CORE_TENSOR_H_

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "core/dtype.h"

namespace quintet {

// Memory of one device. Backends derive from it; a host-visible one tells its address.
class Buffer {
 public:
  virtual ~Buffer() = default;
  virtual size_t bytes() const = 0;
  virtual void* host() { return nullptr; }  // null where the host cannot address the memory
  virtual const void* owner() const { return nullptr; }  // its Device; null: not told, not checked
};

class Tensor {
 public:
  Tensor() = default;
  Tensor(std::shared_ptr<Buffer> buffer, int64_t rows, int64_t cols, int64_t stride, DType dtype)
      : buffer_(std::move(buffer)), rows_(rows), cols_(cols), stride_(stride), dtype_(dtype) {}

  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }
  int64_t stride() const { return stride_; }  // elements from one row to the next, >= cols
  DType dtype() const { return dtype_; }
  bool empty() const { return rows_ == 0 || cols_ == 0; }
  explicit operator bool() const { return buffer_ != nullptr; }

  const std::shared_ptr<Buffer>& buffer() const { return buffer_; }
  int64_t offset() const { return offset_; }  // of the first element, in elements

  // Rows [begin, begin + count), the same memory.
  Tensor rows(int64_t begin, int64_t count) const {
    assert(begin >= 0 && count >= 0 && begin + count <= rows_);
    Tensor part = *this;
    part.offset_ += begin * stride_;
    part.rows_ = count;
    return part;
  }

  // Columns [begin, begin + count), the same memory.
  Tensor columns(int64_t begin, int64_t count) const {
    assert(begin >= 0 && count >= 0 && begin + count <= cols_);
    Tensor part = *this;
    part.offset_ += begin;
    part.cols_ = count;
    return part;
  }

  // Address of row i; only for host-visible buffers.
  template <typename T>
  T* row(int64_t i) const {
    assert(sizeof(T) == size_of(dtype_));
    return static_cast<T*>(buffer_->host()) + offset_ + i * stride_;
  }

 private:
  std::shared_ptr<Buffer> buffer_;
  int64_t rows_ = 0;
  int64_t cols_ = 0;
  int64_t stride_ = 0;
  int64_t offset_ = 0;
  DType dtype_ = DType::kFloat32;
};

}  // namespace quintet

#endif  // QUINTET_CORE_TENSOR_H_
