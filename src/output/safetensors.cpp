// One tensor per record, named by its id: [n_rows, d_model], or [d_model] where pooled.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/human.h"
#include "core/json.h"
#include "output/formats.h"

namespace quintet {
namespace {

using nlohmann::json;

constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // what the readers of this format accept
constexpr size_t kAlignment = 8;

std::string_view dtype_key(DType dtype) {
  return dtype == DType::kFloat32 ? "F32" : dtype == DType::kFloat16 ? "F16" : "BF16";
}

// The header with its length in front, padded so that the data is aligned.
std::string header_of(const Spool& spool, const std::filesystem::path& path) {
  const SpoolShape& shape = spool.shape();
  std::string text = R"({"__metadata__":{"format":"pt"})";
  uint64_t begin = 0;
  spool.each([&](const Frame& frame) {
    if (frame.kind == FrameKind::kRejected) return;
    const uint64_t end = begin + frame.payload_bytes;
    const std::string rows = shape.pooled ? "" : fmt::format("{},", frame.n_rows);
    text += ',' + json(frame.id).dump(-1, ' ', false, json::error_handler_t::replace);
    text += fmt::format(R"(:{{"dtype":"{}","shape":[{}{}],"data_offsets":[{},{}]}})",
                        dtype_key(shape.dtype), rows, shape.d_model, begin, end);
    begin = end;
  });
  text += '}';
  text.append((kAlignment - text.size() % kAlignment) % kAlignment, ' ');
  if (text.size() > kMaxHeaderBytes) {
    fail(ErrorKind::kUsage,
         "{}: a header of {} for {} records, readers of .safetensors accept {}; write .h5 or .npy: "
         "rename {} to OUTPUT.h5.spool and run with --output OUTPUT.h5 --resume",
         path.string(), human_bytes(text.size()), spool.counts().embedded,
         human_bytes(kMaxHeaderBytes), spool.path().string());
  }
  const uint64_t size = text.size();
  return std::string(reinterpret_cast<const char*>(&size), sizeof(size)) + text;
}

struct Entry {
  std::string id;
  SpoolShape shape;
  uint64_t n_rows = 0;
  uint64_t begin = 0;  // in the file
  uint64_t bytes = 0;
};

Entry entry_of(const std::string& name, const json& tensor, uint64_t data_at, uint64_t file_size,
               const std::string& where) {
  try {
    Entry entry;
    entry.id = name;
    const auto dtype = tensor.at("dtype").get<std::string>();
    const auto dims = tensor.at("shape").get<std::vector<uint64_t>>();
    const auto offsets = tensor.at("data_offsets").get<std::vector<uint64_t>>();
    if ((dims.size() == 1 || dims.size() == 2) && offsets.size() == 2) {
      entry.shape.dtype = dtype == "F32"   ? DType::kFloat32
                          : dtype == "F16" ? DType::kFloat16
                                           : DType::kBFloat16;
      entry.shape.pooled = dims.size() == 1;
      entry.shape.d_model = static_cast<int64_t>(dims.back());
      entry.n_rows = entry.shape.pooled ? 1 : dims[0];
      uint64_t bytes = 0;
      const bool sound =
          dtype == dtype_key(entry.shape.dtype) && dims.back() > 0 && dims.back() < (1U << 30) &&
          !__builtin_mul_overflow(entry.n_rows, dims.back() * size_of(entry.shape.dtype), &bytes) &&
          offsets[0] <= offsets[1] && offsets[1] <= file_size - data_at &&
          offsets[1] - offsets[0] == bytes;
      entry.begin = data_at + offsets[0];
      entry.bytes = bytes;
      if (sound) return entry;
    }
  } catch (const json::exception&) {  // a missing key or another type: said below
  }
  fail(ErrorKind::kFile, "{}: '{}' is not an embedding: {}", where, name,
       tensor.dump(-1, ' ', false, json::error_handler_t::replace).substr(0, 120));
}

// Calls `use(entry)` for each tensor in the order of the data, until it returns false.
template <typename Use>
void each_entry(const File& file, const Use& use) {
  const std::string where = file.path().string();
  const uint64_t size = file.size();
  uint64_t length = 0;
  if (size < sizeof(length)) fail(ErrorKind::kFile, "{}: not a .safetensors file", where);
  file.read_at(0, &length, sizeof(length));
  if (length > kMaxHeaderBytes || length > size - sizeof(length)) {
    fail(ErrorKind::kFile, "{}: header of {} bytes in a file of {}", where, length, size);
  }
  std::string text(length, '\0');
  file.read_at(sizeof(length), text.data(), length);
  const json header = parse_json(text, where);
  if (!header.is_object()) fail(ErrorKind::kFile, "{}: the header is not an object", where);
  std::vector<Entry> entries;
  for (const auto& [name, tensor] : header.items()) {
    if (name == "__metadata__") continue;
    entries.push_back(entry_of(name, tensor, sizeof(length) + length, size, where));
  }
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) { return a.begin < b.begin; });
  for (const Entry& entry : entries) {
    if (!use(entry)) return;
  }
}

}  // namespace

void write_safetensors(const Spool& spool, const OutputOptions& options,
                       const std::filesystem::path& path) {
  const std::string header = header_of(spool, options.path);
  BufferedFile file(path);
  file.write(header);
  std::vector<std::byte> payload;
  spool.each([&](const Frame& frame) {
    if (frame.kind == FrameKind::kRejected) return;
    spool.read_payload(frame, payload);
    file.write(payload.data(), payload.size());
  });
  file.close();
}

FileShape inspect_safetensors(const std::filesystem::path& path) {
  FileShape shape;
  shape.empty = true;
  each_entry(File(path, File::Mode::kRead), [&](const Entry& entry) {
    shape.values = entry.shape;
    shape.empty = false;
    return false;
  });
  return shape;
}

void read_safetensors(const std::filesystem::path& path, const RecordSink& sink) {
  const File file(path, File::Mode::kRead);
  std::vector<std::byte> payload;
  each_entry(file, [&](const Entry& entry) {
    payload.resize(entry.bytes);
    file.read_at(entry.begin, payload.data(), payload.size());
    Frame frame;
    frame.id = entry.id;
    frame.n_rows = entry.n_rows;
    sink(frame, payload);
    return true;
  });
}

}  // namespace quintet
