#include "output/hdf5_file.h"

#include "core/error.h"

namespace quintet {
namespace {

// The innermost entry of HDF5's error stack is what went wrong; the outer ones are its callers.
herr_t keep_reason(unsigned /*n*/, const H5E_error2_t* entry, void* reason) {
  *static_cast<std::string*>(reason) = entry->desc;
  return 1;
}

std::string reason_of_failure() {
  std::string reason;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_reason, &reason);
  return reason.empty() ? "unknown reason" : reason;
}

// Bytes of metadata, as they stand in the file, that are kept in memory, where they take about ten
// times as much. By itself the library lets its cache grow with the
// number of datasets, up to 32 MiB.
constexpr size_t kCacheBytes = size_t{128} << 10;

void bound_cache(hid_t access) {
  H5AC_cache_config_t config;
  config.version = H5AC__CURR_CACHE_CONFIG_VERSION;
  if (H5Pget_mdc_config(access, &config) < 0) return;  // it is larger then, no more
  config.set_initial_size = 1;
  config.initial_size = config.min_size = config.max_size = kCacheBytes;
  config.incr_mode = H5C_incr__off;
  config.flash_incr_mode = H5C_flash_incr__off;
  config.decr_mode = H5C_decr__off;
  H5Pset_mdc_config(access, &config);
}

herr_t add_key(hid_t /*group*/, const char* name, const H5L_info_t* /*info*/, void* keys) {
  static_cast<std::vector<std::string>*>(keys)->emplace_back(name);
  return 0;
}

}  // namespace

QuietHdf5::QuietHdf5() {
  // Where the disk fills up, H5Fclose() fails and leaves a half-closed file behind, on which the
  // library's own clean-up at exit crashes. Every file is closed here, so there is nothing to clean
  // up. Counts only before HDF5's first use, and does no harm later.
  H5dont_atexit();
  H5Eget_auto2(H5E_DEFAULT, &print_, &client_);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

QuietHdf5::~QuietHdf5() { H5Eset_auto2(H5E_DEFAULT, print_, client_); }

Hid hdf5_type(DType dtype) {
  Hid type(H5Tcopy(H5T_IEEE_F32LE), H5Tclose);
  if (dtype == DType::kFloat32) return type;
  const bool half = dtype == DType::kFloat16;
  const size_t mantissa = half ? 10 : 7;
  const size_t exponent = half ? 5 : 8;
  H5Tset_fields(type, 15, mantissa, exponent, 0, mantissa);
  H5Tset_precision(type, 16);
  H5Tset_size(type, 2);
  H5Tset_ebias(type, half ? 15 : 127);
  return type;
}

Hdf5File::Hdf5File(const std::filesystem::path& path, Mode mode) : name_(path.string()) {
  Hid access(check(H5Pcreate(H5P_FILE_ACCESS), "file options"), H5Pclose);
  // Compact groups and headers that HDF5 1.8 and later read: a million datasets stay cheap.
  check(H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_V18), "format version");
  // Network folders often cannot lock; the spool's lock already keeps two runs apart.
  check(H5Pset_file_locking(access, 0, 1), "locking");
  bound_cache(access);
  // Datasets pass whole or in large pieces. A buffer for small ones would stay in a free list of
  // its size, up to 16 MiB of them for records of many lengths.
  check(H5Pset_sieve_buf_size(access, 0), "buffer");
  text_type_ = Hid(check(H5Tcopy(H5T_C_S1), "text type"), H5Tclose);
  check(H5Tset_size(text_type_, H5T_VARIABLE), "text type");
  check(H5Tset_cset(text_type_, H5T_CSET_UTF8), "text type");
  link_options_ = Hid(check(H5Pcreate(H5P_LINK_CREATE), "link options"), H5Pclose);
  check(H5Pset_char_encoding(link_options_, H5T_CSET_UTF8), "link options");
  dataset_options_ = Hid(check(H5Pcreate(H5P_DATASET_CREATE), "dataset options"), H5Pclose);
  check(H5Pset_obj_track_times(dataset_options_, 0), "dataset options");  // equal runs, equal bytes
  check(H5Pset_fill_time(dataset_options_, H5D_FILL_TIME_NEVER), "dataset options");
  if (mode == Mode::kCreate) {
    const Hid creation(check(H5Pcreate(H5P_FILE_CREATE), "file options"), H5Pclose);
    check(H5Pset_obj_track_times(creation, 0), "file options");
    file_ =
        Hid(check(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation, access), "create"), H5Fclose);
  } else {
    file_ = Hid(check(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access), "open"), H5Fclose);
  }
}

hid_t Hdf5File::check(hid_t result, const char* what) const {
  if (result < 0) fail(ErrorKind::kIo, "{}: HDF5 {}: {}", name_, what, reason_of_failure());
  return result;
}

Hid Hdf5File::create(const std::string& key, hid_t type, const std::vector<hsize_t>& dims) {
  const Hid space(
      check(H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr), "dataspace"),
      H5Sclose);
  return {check(H5Dcreate2(file_, key.c_str(), type, space, link_options_, dataset_options_,
                           H5P_DEFAULT),
                "create dataset"),
          H5Dclose};
}

void Hdf5File::write(hid_t dataset, hid_t type, const void* values) {
  check(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), "write");
}

namespace {

// The file's and the memory's dataspace of some rows.
std::pair<Hid, Hid> rows_of(const Hdf5File& file, hid_t dataset, uint64_t begin, uint64_t count) {
  std::vector<hsize_t> size = file.dims(dataset);
  std::vector<hsize_t> start(size.size(), 0);
  start[0] = begin;
  size[0] = count;
  Hid in_file(file.check(H5Dget_space(dataset), "dataspace"), H5Sclose);
  file.check(
      H5Sselect_hyperslab(in_file, H5S_SELECT_SET, start.data(), nullptr, size.data(), nullptr),
      "select rows");
  Hid in_memory(file.check(H5Screate_simple(static_cast<int>(size.size()), size.data(), nullptr),
                           "dataspace"),
                H5Sclose);
  return {std::move(in_file), std::move(in_memory)};
}

}  // namespace

void Hdf5File::write_rows(hid_t dataset, hid_t type, uint64_t begin, uint64_t count,
                          const void* values) {
  if (count == 0) return;
  const auto [in_file, in_memory] = rows_of(*this, dataset, begin, count);
  check(H5Dwrite(dataset, type, in_memory, in_file, H5P_DEFAULT, values), "write");
}

void Hdf5File::read_rows(hid_t dataset, hid_t type, uint64_t begin, uint64_t count,
                         void* values) const {
  if (count == 0) return;
  const auto [in_file, in_memory] = rows_of(*this, dataset, begin, count);
  check(H5Dread(dataset, type, in_memory, in_file, H5P_DEFAULT, values), "read");
}

void Hdf5File::link(const std::string& from, const std::string& to) {
  check(H5Lcreate_hard(file_, from.c_str(), file_, to.c_str(), link_options_, H5P_DEFAULT),
        "second name");
}

Hid Hdf5File::open(const std::string& key) const {
  return {check(H5Dopen2(file_, key.c_str(), H5P_DEFAULT), "open dataset"), H5Dclose};
}

bool Hdf5File::has(const std::string& key) const {
  return check(H5Lexists(file_, key.c_str(), H5P_DEFAULT), "look up") > 0;
}

std::vector<std::string> Hdf5File::keys() const {
  std::vector<std::string> keys;
  check(H5Literate(file_, H5_INDEX_NAME, H5_ITER_NATIVE, nullptr, add_key, &keys), "list");
  return keys;
}

std::vector<hsize_t> Hdf5File::dims(hid_t dataset) const {
  const Hid space(check(H5Dget_space(dataset), "dataspace"), H5Sclose);
  const auto rank = check(H5Sget_simple_extent_ndims(space), "rank");
  std::vector<hsize_t> dims(static_cast<size_t>(rank));
  check(H5Sget_simple_extent_dims(space, dims.data(), nullptr), "shape");
  return dims;
}

std::optional<DType> Hdf5File::dtype(hid_t dataset) const {
  const Hid type(check(H5Dget_type(dataset), "type"), H5Tclose);
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    if (H5Tequal(type, hdf5_type(dtype)) > 0) return dtype;
  }
  return std::nullopt;
}

void Hdf5File::set_text(hid_t object, const char* key, const std::string& text) {
  const Hid space(check(H5Screate(H5S_SCALAR), "dataspace"), H5Sclose);
  Hid attribute(check(H5Acreate2(object, key, text_type_, space, H5P_DEFAULT, H5P_DEFAULT),
                      "create attribute"),
                H5Aclose);
  const char* value = text.c_str();
  check(H5Awrite(attribute, text_type_, &value), "write attribute");
}

void Hdf5File::set_texts(hid_t object, const char* key, const std::vector<std::string>& texts) {
  const hsize_t n = texts.size();
  const Hid space(check(H5Screate_simple(1, &n, nullptr), "dataspace"), H5Sclose);
  Hid attribute(check(H5Acreate2(object, key, text_type_, space, H5P_DEFAULT, H5P_DEFAULT),
                      "create attribute"),
                H5Aclose);
  std::vector<const char*> values;
  for (const auto& text : texts) values.push_back(text.c_str());
  check(H5Awrite(attribute, text_type_, values.data()), "write attribute");
}

void Hdf5File::set_number(hid_t object, const char* key, int64_t number) {
  const Hid space(check(H5Screate(H5S_SCALAR), "dataspace"), H5Sclose);
  Hid attribute(check(H5Acreate2(object, key, H5T_STD_I64LE, space, H5P_DEFAULT, H5P_DEFAULT),
                      "create attribute"),
                H5Aclose);
  check(H5Awrite(attribute, H5T_NATIVE_INT64, &number), "write attribute");
}

std::vector<std::string> Hdf5File::texts(hid_t object, const char* key) const {
  if (check(H5Aexists(object, key), "look up attribute") == 0) return {};
  Hid attribute(check(H5Aopen(object, key, H5P_DEFAULT), "open attribute"), H5Aclose);
  const Hid type(check(H5Aget_type(attribute), "type"), H5Tclose);
  if (check(H5Tis_variable_str(type), "type") == 0) {
    fail(ErrorKind::kFile, "{}: attribute '{}' is not a text of variable length", name_, key);
  }
  const Hid space(check(H5Aget_space(attribute), "dataspace"), H5Sclose);
  const auto n = check(H5Sget_simple_extent_npoints(space), "shape");
  std::vector<char*> values(static_cast<size_t>(n), nullptr);
  check(H5Aread(attribute, text_type_, values.data()), "read attribute");
  std::vector<std::string> texts;
  for (const char* value : values) texts.emplace_back(value == nullptr ? "" : value);
  H5Dvlen_reclaim(text_type_, space, H5P_DEFAULT, values.data());
  return texts;
}

void Hdf5File::close() { check(file_.reset(), "close"); }

}  // namespace quintet
