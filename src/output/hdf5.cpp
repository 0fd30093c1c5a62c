// HDF5 in the layouts that people's scripts read.
//
//   prottrans       one dataset per id at the root, '/' and '.' written '_'; attribute original_id
//   bio-embeddings  one dataset per sequence, its MD5 the key; original_id, and original_ids where
//   tmbed           several records share the sequence; tmbed in float16
//   flat            embeddings [total_rows, d_model] (also linked as `embedding`, scikit-bio's
//                   name), embedding_ptr [n], id (what was embedded, as bytes), idptr [n],
//                   original_id, original_idptr [n]; each pointer is where a record ends
#include <algorithm>
#include <map>
#include <set>

#include "core/error.h"
#include "output/formats.h"
#include "output/hdf5_file.h"

namespace quintet {
namespace {

constexpr size_t kColumnBytes = size_t{4} << 20;

// One dataset that grows by rows: collects them, since many small writes are slow.
class Column {
 public:
  Column(Hdf5File& file, const std::string& key, hid_t type, std::vector<hsize_t> dims)
      : file_(file), type_(type), dataset_(file.create(key, type, dims)) {
    row_bytes_ = H5Tget_size(type);
    for (size_t i = 1; i < dims.size(); ++i) row_bytes_ *= dims[i];
  }

  void append(const void* rows, size_t bytes) {
    const auto* begin = static_cast<const std::byte*>(rows);
    buffer_.insert(buffer_.end(), begin, begin + bytes);
    if (buffer_.size() >= kColumnBytes) flush();
  }

  void flush() {
    const uint64_t count = buffer_.size() / row_bytes_;
    file_.write_rows(dataset_, type_, written_, count, buffer_.data());
    written_ += count;
    buffer_.clear();
  }

 private:
  Hdf5File& file_;
  hid_t type_;
  Hid dataset_;
  size_t row_bytes_ = 0;
  uint64_t written_ = 0;
  std::vector<std::byte> buffer_;
};

// Bytes of variable length and where each record's end, as two columns.
class TextColumns {
 public:
  TextColumns(Hdf5File& file, const std::string& text, const std::string& pointer, uint64_t bytes,
              uint64_t n)
      : text_(file, text, H5T_STD_U8LE, {bytes}), pointer_(file, pointer, H5T_STD_I64LE, {n}) {}

  void append(const std::string& text) {
    end_ += static_cast<int64_t>(text.size());
    text_.append(text.data(), text.size());
    pointer_.append(&end_, sizeof(end_));
  }

  void flush() {
    text_.flush();
    pointer_.flush();
  }

 private:
  Column text_;
  Column pointer_;
  int64_t end_ = 0;
};

void write_flat(const Spool& spool, Hdf5File& file) {
  const SpoolShape& shape = spool.shape();
  uint64_t rows = 0;
  uint64_t text_bytes = 0;
  uint64_t id_bytes = 0;
  spool.each([&](const Frame& frame) {
    if (frame.kind == FrameKind::kRejected) return;
    rows += frame.n_rows;
    text_bytes += frame.text.size();
    id_bytes += frame.id.size();
  });
  const uint64_t n = spool.counts().embedded;
  const Hid type = hdf5_type(shape.dtype);
  Column values(file, "embeddings", type, {rows, static_cast<hsize_t>(shape.d_model)});
  Column pointer(file, "embedding_ptr", H5T_STD_I64LE, {n});
  TextColumns text(file, "id", "idptr", text_bytes, n);
  TextColumns id(file, "original_id", "original_idptr", id_bytes, n);
  file.link("embeddings", "embedding");
  file.set_text(file.id(), "format", "embedding");
  file.set_text(file.id(), "format-version", "1.0");
  file.set_text(file.id(), "dtype", std::string(name_of(shape.dtype)));
  file.set_number(file.id(), "dim", shape.d_model);
  std::vector<std::byte> payload;
  int64_t end = 0;
  spool.each([&](const Frame& frame) {
    if (frame.kind == FrameKind::kRejected) return;
    spool.read_payload(frame, payload);
    values.append(payload.data(), payload.size());
    end += static_cast<int64_t>(frame.n_rows);
    pointer.append(&end, sizeof(end));
    text.append(frame.text);
    id.append(frame.id);
  });
  values.flush();
  pointer.flush();
  text.flush();
  id.flush();
}

// One dataset per record, or per sequence where its digest is the key.
class KeyedWriter {
 public:
  KeyedWriter(const Spool& spool, const OutputOptions& options, Hdf5File& file)
      : spool_(spool), options_(options), file_(file), type_(hdf5_type(spool.shape().dtype)) {}

  void write() {
    const bool by_digest = options_.layout != Hdf5Layout::kProtTrans;
    if (by_digest) find_shared();
    spool_.each([&](const Frame& frame) {
      if (frame.kind == FrameKind::kRejected) return;
      const auto shared = shared_.find(frame.digest);
      if (shared == shared_.end()) {
        write_dataset(frame, by_digest ? hex_of(frame.digest) : output_key(options_, frame.id), {});
      } else if (!shared->second.empty()) {  // the first of several
        write_dataset(frame, hex_of(frame.digest), shared->second);
        shared->second.clear();
      }
    });
  }

 private:
  // Fills shared_ with the ids of every sequence that several records have.
  void find_shared() {
    std::set<SequenceDigest> seen;
    spool_.each([&](const Frame& frame) {
      if (frame.kind != FrameKind::kRejected && !seen.insert(frame.digest).second) {
        shared_[frame.digest];
      }
    });
    spool_.each([&](const Frame& frame) {
      if (frame.kind == FrameKind::kRejected) return;
      const auto shared = shared_.find(frame.digest);
      if (shared != shared_.end()) shared->second.push_back(frame.id);
    });
  }

  void write_dataset(const Frame& frame, const std::string& key,
                     const std::vector<std::string>& ids) {
    spool_.read_payload(frame, payload_);
    std::vector<hsize_t> dims = {static_cast<hsize_t>(spool_.shape().d_model)};
    if (!spool_.shape().pooled) dims.insert(dims.begin(), frame.n_rows);
    Hid dataset = file_.create(key, type_, dims);
    if (!payload_.empty()) file_.write(dataset, type_, payload_.data());
    file_.set_text(dataset, "original_id", frame.id);
    if (!ids.empty()) file_.set_texts(dataset, "original_ids", ids);
    file_.check(dataset.reset(), "close dataset");
  }

  const Spool& spool_;
  const OutputOptions& options_;
  Hdf5File& file_;
  Hid type_;
  std::map<SequenceDigest, std::vector<std::string>> shared_;
  std::vector<std::byte> payload_;
};

SequenceDigest digest_from_hex(const Hdf5File& file, const std::string& key) {
  SequenceDigest digest{};
  const auto nibble = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  bool sound = key.size() == 2 * digest.size();
  for (size_t i = 0; sound && i < digest.size(); ++i) {
    const int high = nibble(key[2 * i]);
    const int low = nibble(key[2 * i + 1]);
    sound = high >= 0 && low >= 0;
    digest[i] = static_cast<uint8_t>(high * 16 + low);
  }
  if (!sound) fail(ErrorKind::kFile, "{}: key '{}' is not an MD5", file.name(), key);
  return digest;
}

// Shape of a dataset of embeddings; with its rows.
std::pair<SpoolShape, uint64_t> shape_of(const Hdf5File& file, hid_t dataset,
                                         const std::string& key) {
  const auto dims = file.dims(dataset);
  const auto dtype = file.dtype(dataset);
  if ((dims.size() != 1 && dims.size() != 2) || !dtype || dims.back() == 0) {
    fail(ErrorKind::kFile, "{}: '{}' is not a matrix or vector of float32, float16 or bfloat16",
         file.name(), key);
  }
  const bool pooled = dims.size() == 1;
  return {{.dtype = *dtype, .pooled = pooled, .d_model = static_cast<int64_t>(dims.back())},
          pooled ? 1 : dims[0]};
}

template <typename T>
std::vector<T> read_all(const Hdf5File& file, const std::string& key, hid_t type) {
  const Hid dataset = file.open(key);
  const auto dims = file.dims(dataset);
  if (dims.size() != 1) fail(ErrorKind::kFile, "{}: '{}' is not a list", file.name(), key);
  std::vector<T> values(dims[0]);
  file.read_rows(dataset, type, 0, dims[0], values.data());
  return values;
}

// Cuts `bytes` into texts that end at `ends`.
std::vector<std::string> cut(const Hdf5File& file, const std::string& text_key,
                             const std::string& pointer_key) {
  const auto bytes = read_all<char>(file, text_key, H5T_NATIVE_UINT8);
  std::vector<std::string> texts;
  int64_t begin = 0;
  for (const int64_t end : read_all<int64_t>(file, pointer_key, H5T_NATIVE_INT64)) {
    if (end < begin || end > static_cast<int64_t>(bytes.size())) {
      fail(ErrorKind::kFile, "{}: '{}' points outside of '{}'", file.name(), pointer_key, text_key);
    }
    texts.emplace_back(bytes.data() + begin, bytes.data() + end);
    begin = end;
  }
  return texts;
}

void read_flat(const Hdf5File& file, const RecordSink& sink) {
  const Hid dataset = file.open("embeddings");
  const auto [shape, total] = shape_of(file, dataset, "embeddings");
  const auto ids = cut(file, "original_id", "original_idptr");
  const auto texts = cut(file, "id", "idptr");
  const auto ends = read_all<int64_t>(file, "embedding_ptr", H5T_NATIVE_INT64);
  if (ids.size() != ends.size() || texts.size() != ends.size()) {
    fail(ErrorKind::kFile, "{}: {} ids, {} texts and {} embeddings", file.name(), ids.size(),
         texts.size(), ends.size());
  }
  const Hid type = hdf5_type(shape.dtype);
  std::vector<std::byte> payload;
  int64_t begin = 0;
  for (size_t i = 0; i < ends.size(); ++i) {
    if (ends[i] < begin || ends[i] > static_cast<int64_t>(total)) {
      fail(ErrorKind::kFile, "{}: 'embedding_ptr' points outside of 'embeddings'", file.name());
    }
    Frame frame;
    frame.id = ids[i];
    frame.text = texts[i];
    frame.n_rows = static_cast<uint64_t>(ends[i] - begin);
    payload.resize(frame.n_rows * static_cast<size_t>(shape.d_model) * size_of(shape.dtype));
    file.read_rows(dataset, type, static_cast<uint64_t>(begin), frame.n_rows, payload.data());
    sink(frame, payload);
    begin = ends[i];
  }
}

Hdf5Layout layout_of(const Hdf5File& file) {
  const auto name = file.texts(file.id(), "layout");
  if (name.size() != 1) {
    fail(ErrorKind::kFile,
         "{}: has no attribute 'layout'; only files that quintet wrote are merged", file.name());
  }
  return hdf5_layout_from_name(name[0]);
}

}  // namespace

std::string_view layout_name(Hdf5Layout layout) {
  switch (layout) {
    case Hdf5Layout::kProtTrans:
      return "prottrans";
    case Hdf5Layout::kBioEmbeddings:
      return "bio-embeddings";
    case Hdf5Layout::kTmbed:
      return "tmbed";
    case Hdf5Layout::kFlat:
      return "flat";
  }
  return "";
}

Hdf5Layout hdf5_layout_from_name(std::string_view name) {
  for (const auto layout : {Hdf5Layout::kProtTrans, Hdf5Layout::kBioEmbeddings, Hdf5Layout::kTmbed,
                            Hdf5Layout::kFlat}) {
    if (layout_name(layout) == name) return layout;
  }
  fail(ErrorKind::kUsage, "--layout {}: expected prottrans, bio-embeddings, tmbed or flat", name);
}

void write_hdf5(const Spool& spool, const OutputOptions& options,
                const std::filesystem::path& path) {
  Hdf5File file(path, Hdf5File::Mode::kCreate);
  file.set_text(file.id(), "layout", std::string(layout_name(options.layout)));
  if (options.layout == Hdf5Layout::kFlat) {
    write_flat(spool, file);
  } else {
    KeyedWriter(spool, options, file).write();
  }
  file.close();
  File(path, File::Mode::kReadWrite).sync();
}

FileShape inspect_hdf5(const std::filesystem::path& path) {
  const Hdf5File file(path, Hdf5File::Mode::kRead);
  FileShape shape;
  shape.layout = layout_of(file);
  const auto keys = file.keys();
  if (shape.layout == Hdf5Layout::kFlat) {
    shape.values = shape_of(file, file.open("embeddings"), "embeddings").first;
    // Flat stands in rows either way: pooled where every record has exactly one.
    shape.empty = read_all<int64_t>(file, "embedding_ptr", H5T_NATIVE_INT64).empty();
  } else if (!keys.empty()) {
    shape.values = shape_of(file, file.open(keys[0]), keys[0]).first;
  } else {
    shape.empty = true;
  }
  return shape;
}

void read_hdf5(const std::filesystem::path& path, const RecordSink& sink) {
  const Hdf5File file(path, Hdf5File::Mode::kRead);
  const Hdf5Layout layout = layout_of(file);
  if (layout == Hdf5Layout::kFlat) {
    read_flat(file, sink);
    return;
  }
  std::vector<std::byte> payload;
  for (const std::string& key : file.keys()) {
    const Hid dataset = file.open(key);
    const auto [shape, n_rows] = shape_of(file, dataset, key);
    Frame frame;
    frame.n_rows = n_rows;
    if (layout != Hdf5Layout::kProtTrans) frame.digest = digest_from_hex(file, key);
    payload.resize(n_rows * static_cast<size_t>(shape.d_model) * size_of(shape.dtype));
    file.read_rows(dataset, hdf5_type(shape.dtype), 0, file.dims(dataset)[0], payload.data());
    auto ids = file.texts(dataset, "original_ids");
    if (ids.empty()) ids = file.texts(dataset, "original_id");
    if (ids.empty()) fail(ErrorKind::kFile, "{}: '{}' has no original_id", file.name(), key);
    for (const std::string& id : ids) {
      frame.id = id;
      sink(frame, payload);
    }
  }
}

}  // namespace quintet
