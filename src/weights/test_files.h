// For the tests of this room: bytes, temporary folders, and what an error says.
#ifndef QUINTET_WEIGHTS_TEST_FILES_H_
#define QUINTET_WEIGHTS_TEST_FILES_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "weights/tensor_file.h"

namespace quintet {

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

template <typename T>
std::string little_endian(T value) {
  std::string text(sizeof(T), '\0');
  std::memcpy(text.data(), &value, sizeof(T));
  return text;
}

inline std::string fixture(const std::string& name) {
  const std::string path = std::string(QUINTET_FIXTURES "/weights/") + name;
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

// A safetensors file of `header` and `data`.
inline std::string safetensors_of(std::string_view header, std::string_view data) {
  return little_endian(uint64_t{header.size()}).append(header).append(data);
}

// What a call throws; "" where it throws nothing. Only files may be at fault.
template <typename Call>
std::string problem_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_TRUE(error.kind() == ErrorKind::kFile || error.kind() == ErrorKind::kIo);
    return error.what();
  }
  return "";
}

inline std::vector<float> values_of(const HostView& tensor) {
  std::vector<float> values(static_cast<size_t>(element_count(tensor.shape).value()));
  widen(tensor.data, tensor.dtype, values.size(), values.data());
  return values;
}

inline const HostView& tensor_in(const TensorFile& file, std::string_view name) {
  const auto found = std::find_if(file.tensors.begin(), file.tensors.end(),
                                  [&](const HostView& tensor) { return tensor.name == name; });
  if (found == file.tensors.end()) fail(ErrorKind::kUsage, "no tensor {}", name);
  return *found;
}

// A folder that goes with the test.
class TestFolder {
 public:
  TestFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "quintet-weights-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) fail(ErrorKind::kIo, "no temporary folder");
    path_ = name;
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  void write(const std::string& name, std::string_view contents) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << contents;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace quintet

#endif  // QUINTET_WEIGHTS_TEST_FILES_H_
