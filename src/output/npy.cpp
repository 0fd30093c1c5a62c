// NumPy's .npy (version 1.0), pooled vectors only: one array [n, d_model], and beside it
// OUTPUT.ids.txt with one id per line, in which a line break is written \n and a backslash \\.
#include <array>
#include <cstring>
#include <fstream>

#include "core/error.h"
#include "output/formats.h"

namespace quintet {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY\x01";
constexpr std::string_view kIdsSuffix = ".ids.txt";
constexpr size_t kAlignment = 64;

std::string header_of(const SpoolShape& shape, uint64_t n) {
  std::string dict = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}, {}), }}",
                                 shape.dtype == DType::kFloat16 ? "<f2" : "<f4", n, shape.d_model);
  const size_t fixed = 10 + dict.size() + 1;
  dict.append((kAlignment - fixed % kAlignment) % kAlignment, ' ');
  dict += '\n';
  std::string header(kMagic);
  header += '\0';
  header += static_cast<char>(dict.size() & 0xFF);
  header += static_cast<char>(dict.size() >> 8);
  return header + dict;
}

std::string escaped(std::string_view id) {
  std::string line;
  for (const char c : id) {
    if (c == '\n') {
      line += "\\n";
    } else if (c == '\r') {
      line += "\\r";
    } else if (c == '\\') {
      line += "\\\\";
    } else {
      line += c;
    }
  }
  return line;
}

std::string unescaped(std::string_view line) {
  std::string id;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\\' && i + 1 < line.size()) {
      ++i;
      id += line[i] == 'n' ? '\n' : line[i] == 'r' ? '\r' : line[i];
    } else {
      id += line[i];
    }
  }
  return id;
}

struct Header {
  SpoolShape shape;
  uint64_t n = 0;
  uint64_t data_at = 0;
};

// Reads what header_of() writes; other spellings of the dictionary are not ours to merge.
Header read_header(const File& file) {
  std::array<char, 10> fixed{};
  const std::string name = file.path().string();
  if (file.read_some_at(0, fixed.data(), fixed.size()) != fixed.size() ||
      std::string_view(fixed.data(), kMagic.size()) != kMagic) {
    fail(ErrorKind::kFile, "{}: not a .npy file of version 1.0", name);
  }
  const size_t size = static_cast<unsigned char>(fixed[8]) +
                      (static_cast<size_t>(static_cast<unsigned char>(fixed[9])) << 8);
  std::string dict(size, '\0');
  file.read_at(fixed.size(), dict.data(), size);
  Header header;
  header.shape.pooled = true;
  header.data_at = fixed.size() + size;
  long long n = 0;
  long long d_model = 0;
  std::array<char, 4> type{};
  const int found =
      std::sscanf(dict.c_str(), "{'descr': '%3[^']', 'fortran_order': False, 'shape': (%lld, %lld)",
                  type.data(), &n, &d_model);
  const std::string_view descr(type.data());
  if (found != 3 || n < 0 || d_model < 1 || (descr != "<f4" && descr != "<f2")) {
    fail(ErrorKind::kFile, "{}: expected a matrix of '<f4' or '<f2' in C order, found {}", name,
         dict.substr(0, 120));
  }
  header.shape.dtype = descr == "<f2" ? DType::kFloat16 : DType::kFloat32;
  header.shape.d_model = d_model;
  header.n = static_cast<uint64_t>(n);
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(header.n, static_cast<uint64_t>(d_model) * size_of(header.shape.dtype),
                             &bytes) ||
      file.size() - header.data_at != bytes) {
    fail(ErrorKind::kFile, "{}: holds {} bytes of data, its header says [{}, {}]", name,
         file.size() - header.data_at, n, d_model);
  }
  return header;
}

}  // namespace

void write_npy(const Spool& spool, const OutputOptions& /*options*/,
               const std::filesystem::path& path) {
  BufferedFile array(path);
  BufferedFile ids(with_suffix(path, kIdsSuffix));
  array.write(header_of(spool.shape(), spool.counts().embedded));
  std::vector<std::byte> payload;
  spool.each([&](const Frame& frame) {
    if (frame.kind == FrameKind::kRejected) return;
    spool.read_payload(frame, payload);
    array.write(payload.data(), payload.size());
    ids.write(escaped(frame.id) + '\n');
  });
  ids.close();
  array.close();
}

FileShape inspect_npy(const std::filesystem::path& path) {
  const Header header = read_header(File(path, File::Mode::kRead));
  return {.values = header.shape, .empty = header.n == 0};
}

void read_npy(const std::filesystem::path& path, const RecordSink& sink) {
  const File file(path, File::Mode::kRead);
  const Header header = read_header(file);
  const auto ids_path = with_suffix(path, kIdsSuffix);
  std::ifstream ids(ids_path, std::ios::binary);
  if (!ids)
    fail(ErrorKind::kIo, "{}: cannot open; it holds the ids of {}", ids_path.string(),
         path.string());
  const size_t row_bytes = static_cast<size_t>(header.shape.d_model) * size_of(header.shape.dtype);
  std::vector<std::byte> payload(row_bytes);
  std::string line;
  uint64_t i = 0;
  for (; i < header.n && std::getline(ids, line); ++i) {
    file.read_at(header.data_at + i * row_bytes, payload.data(), row_bytes);
    Frame frame;
    frame.id = unescaped(line);
    frame.n_rows = 1;
    sink(frame, payload);
  }
  if (i != header.n || std::getline(ids, line)) {
    fail(ErrorKind::kFile, "{}: does not hold the {} ids of {}", ids_path.string(), header.n,
         path.string());
  }
}

}  // namespace quintet
