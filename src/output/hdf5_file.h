// The C API of HDF5 with owners for its handles and Error for its failures.
#ifndef QUINTET_OUTPUT_HDF5_FILE_H_
#define QUINTET_OUTPUT_HDF5_FILE_H_

#include <hdf5.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/dtype.h"

namespace quintet {

// Owns one handle of any kind.
class Hid {
 public:
  using Close = herr_t (*)(hid_t);
  Hid() = default;
  Hid(hid_t id, Close close) : id_(id), close_(close) {}
  ~Hid() { reset(); }
  Hid(Hid&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Hid& operator=(Hid&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  operator hid_t() const { return id_; }  // NOLINT: what the C API takes
  herr_t reset() {
    const hid_t id = std::exchange(id_, -1);
    return id >= 0 ? close_(id) : 0;
  }

 private:
  hid_t id_ = -1;
  Close close_ = nullptr;
};

// Keeps the library from printing its error stack while this object lives.
class QuietHdf5 {
 public:
  QuietHdf5();
  ~QuietHdf5();
  QuietHdf5(const QuietHdf5&) = delete;
  QuietHdf5& operator=(const QuietHdf5&) = delete;

 private:
  H5E_auto2_t print_ = nullptr;
  void* client_ = nullptr;
};

// One .h5 file, new or read back. Everything throws Error with the file's name and HDF5's reason.
class Hdf5File {
 public:
  enum class Mode { kCreate, kRead };
  Hdf5File(const std::filesystem::path& path, Mode mode);

  const std::string& name() const { return name_; }
  hid_t id() const { return file_; }

  // A contiguous dataset at the root; its bytes are written by write() or write_rows().
  Hid create(const std::string& key, hid_t type, const std::vector<hsize_t>& dims);
  void write(hid_t dataset, hid_t type, const void* values);
  // Rows [begin, begin + count) along the first axis.
  void write_rows(hid_t dataset, hid_t type, uint64_t begin, uint64_t count, const void* values);
  void read_rows(hid_t dataset, hid_t type, uint64_t begin, uint64_t count, void* values) const;
  void link(const std::string& from, const std::string& to);  // a second name for a dataset

  Hid open(const std::string& key) const;
  bool has(const std::string& key) const;
  std::vector<std::string> keys() const;
  std::vector<hsize_t> dims(hid_t dataset) const;
  std::optional<DType> dtype(hid_t dataset) const;

  // Attributes of a dataset or, with id(), of the file: UTF-8 strings as h5py writes them.
  void set_text(hid_t object, const char* key, const std::string& text);
  void set_texts(hid_t object, const char* key, const std::vector<std::string>& texts);
  void set_number(hid_t object, const char* key, int64_t number);
  std::vector<std::string> texts(hid_t object, const char* key) const;  // empty: no such attribute

  void close();                                       // puts everything into the file
  hid_t check(hid_t result, const char* what) const;  // throws where it is negative

 private:
  std::string name_;
  QuietHdf5 quiet_;
  Hid text_type_;
  Hid dataset_options_;
  Hid link_options_;
  Hid file_;  // closed first
};

// A float type of the file; bfloat16 is described bit by bit, HDF5 1.10 has no name for it.
Hid hdf5_type(DType dtype);

}  // namespace quintet

#endif  // QUINTET_OUTPUT_HDF5_FILE_H_
