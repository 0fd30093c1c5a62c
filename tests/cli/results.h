// Reads what the program wrote: every record's numbers by its id, and what is said beside them.
#ifndef QUINTET_TESTS_CLI_RESULTS_H_
#define QUINTET_TESTS_CLI_RESULTS_H_

#include <hdf5.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace quintet {

struct Array {
  std::vector<int64_t> shape;
  std::vector<float> values;  // row-major

  int64_t rows() const { return shape.at(0); }
  std::vector<float> row(int64_t i) const;
  bool operator==(const Array& other) const = default;
};

using Arrays = std::map<std::string, Array>;

Arrays read_jsonl_arrays(const std::string& text);
Arrays read_safetensors_arrays(const std::filesystem::path& path);
std::vector<nlohmann::json> json_lines(const std::string& text);
nlohmann::json read_json(const std::filesystem::path& path);
// The lines of a text, in an order that does not depend on theirs.
std::vector<std::string> sorted_lines(const std::string& text);
// The reason of every rejected record, by id.
std::map<std::string, std::string> read_rejects(const std::filesystem::path& output);

// An HDF5 file, read through the library that users' scripts are built on.
class Hdf5Reader {
 public:
  explicit Hdf5Reader(const std::filesystem::path& path);
  ~Hdf5Reader();
  Hdf5Reader(const Hdf5Reader&) = delete;
  Hdf5Reader& operator=(const Hdf5Reader&) = delete;

  std::vector<std::string> names() const;  // at the root, sorted
  Array array(const std::string& name) const;
  std::vector<int64_t> integers(const std::string& name) const;
  std::string bytes(const std::string& name) const;
  size_t bytes_per_number(const std::string& name) const;
  std::string text_attribute(const std::string& dataset, const std::string& name) const;

 private:
  hid_t file_;
};

}  // namespace quintet

#endif  // QUINTET_TESTS_CLI_RESULTS_H_
