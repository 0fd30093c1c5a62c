#include "results.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <sstream>

#include "core/dtype.h"
#include "output/test_folder.h"

namespace quintet {
namespace {

size_t count(const std::vector<int64_t>& shape) {
  return static_cast<size_t>(
      std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>()));
}

void flatten(const nlohmann::json& value, std::vector<float>& into) {
  if (!value.is_array()) {
    into.push_back(value.get<float>());
    return;
  }
  for (const auto& item : value) flatten(item, into);
}

template <typename T>
std::vector<T> read_dataset(hid_t file, const std::string& name, hid_t type,
                            std::vector<int64_t>* shape = nullptr) {
  const hid_t dataset = H5Dopen2(file, name.c_str(), H5P_DEFAULT);
  const hid_t space = H5Dget_space(dataset);
  std::vector<hsize_t> extents(static_cast<size_t>(H5Sget_simple_extent_ndims(space)));
  H5Sget_simple_extent_dims(space, extents.data(), nullptr);
  std::vector<T> values(static_cast<size_t>(H5Sget_simple_extent_npoints(space)));
  H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
  if (shape != nullptr) shape->assign(extents.begin(), extents.end());
  H5Sclose(space);
  H5Dclose(dataset);
  return values;
}

}  // namespace

std::vector<float> Array::row(int64_t i) const {
  const int64_t width = shape.at(1);
  return {values.begin() + i * width, values.begin() + (i + 1) * width};
}

std::vector<nlohmann::json> json_lines(const std::string& text) {
  std::vector<nlohmann::json> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

nlohmann::json read_json(const std::filesystem::path& path) {
  return nlohmann::json::parse(read_file(path));
}

Arrays read_jsonl_arrays(const std::string& text) {
  Arrays arrays;
  for (const auto& line : json_lines(text)) {
    Array& array = arrays[line.at("id")];
    const auto& embedding = line.at("embedding");
    array.shape.push_back(static_cast<int64_t>(embedding.size()));
    if (!embedding.empty() && embedding[0].is_array()) {
      array.shape.push_back(static_cast<int64_t>(embedding[0].size()));
    }
    flatten(embedding, array.values);
  }
  return arrays;
}

Arrays read_safetensors_arrays(const std::filesystem::path& path) {
  const std::string bytes = read_file(path);
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data(), sizeof(header_bytes));
  const auto header = nlohmann::json::parse(bytes.substr(8, header_bytes));
  const std::map<std::string, DType> types = {
      {"F32", DType::kFloat32}, {"F16", DType::kFloat16}, {"BF16", DType::kBFloat16}};
  Arrays arrays;
  for (const auto& [name, tensor] : header.items()) {
    if (name == "__metadata__") continue;
    Array& array = arrays[name];
    array.shape = tensor.at("shape").get<std::vector<int64_t>>();
    array.values.resize(count(array.shape));
    const char* data = bytes.data() + 8 + header_bytes + tensor.at("data_offsets")[0].get<size_t>();
    widen(data, types.at(tensor.at("dtype")), array.values.size(), array.values.data());
  }
  return arrays;
}

std::vector<std::string> sorted_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  std::sort(lines.begin(), lines.end());
  return lines;
}

std::map<std::string, std::string> read_rejects(const std::filesystem::path& output) {
  std::map<std::string, std::string> rejects;
  for (const auto& line : json_lines(read_file(output.string() + ".rejects.jsonl"))) {
    rejects[line.at("id")] = line.at("reason");
  }
  return rejects;
}

Hdf5Reader::Hdf5Reader(const std::filesystem::path& path)
    : file_(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT)) {}

Hdf5Reader::~Hdf5Reader() { H5Fclose(file_); }

std::vector<std::string> Hdf5Reader::names() const {
  std::vector<std::string> names;
  const auto add = [](hid_t, const char* name, const H5L_info_t*, void* into) -> herr_t {
    static_cast<std::vector<std::string>*>(into)->emplace_back(name);
    return 0;
  };
  H5Literate(file_, H5_INDEX_NAME, H5_ITER_NATIVE, nullptr, add, &names);
  std::sort(names.begin(), names.end());
  return names;
}

Array Hdf5Reader::array(const std::string& name) const {
  Array array;
  array.values = read_dataset<float>(file_, name, H5T_NATIVE_FLOAT, &array.shape);
  return array;
}

std::vector<int64_t> Hdf5Reader::integers(const std::string& name) const {
  return read_dataset<int64_t>(file_, name, H5T_NATIVE_INT64);
}

std::string Hdf5Reader::bytes(const std::string& name) const {
  const auto values = read_dataset<uint8_t>(file_, name, H5T_NATIVE_UINT8);
  return {values.begin(), values.end()};
}

size_t Hdf5Reader::bytes_per_number(const std::string& name) const {
  const hid_t dataset = H5Dopen2(file_, name.c_str(), H5P_DEFAULT);
  const hid_t type = H5Dget_type(dataset);
  const size_t size = H5Tget_size(type);
  H5Tclose(type);
  H5Dclose(dataset);
  return size;
}

std::string Hdf5Reader::text_attribute(const std::string& dataset, const std::string& name) const {
  const hid_t attribute =
      H5Aopen_by_name(file_, dataset.c_str(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT);
  const hid_t type = H5Aget_type(attribute);
  std::string text;
  if (H5Tis_variable_str(type) > 0) {
    char* data = nullptr;
    H5Aread(attribute, type, &data);
    text = data;
    H5free_memory(data);
  } else {
    text.resize(H5Tget_size(type));
    H5Aread(attribute, type, text.data());
    text.resize(std::strlen(text.c_str()));
  }
  H5Tclose(type);
  H5Aclose(attribute);
  return text;
}

}  // namespace quintet
