// What every file format offers: build the file from a spool, and read one back for merging.
#ifndef QUINTET_OUTPUT_FORMATS_H_
#define QUINTET_OUTPUT_FORMATS_H_

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string_view>
#include <vector>

#include "output/spool.h"
#include "output/writer.h"

namespace quintet {

// Hands on one record of a file that is read back: values in the file's own dtype.
using RecordSink = std::function<void(const Frame&, const std::vector<std::byte>&)>;

// What kind of file stands there: what the outputs to be merged must agree on.
struct FileShape {
  SpoolShape values;
  Hdf5Layout layout = Hdf5Layout::kProtTrans;
  bool empty = false;  // no records: `values` says nothing
};

struct Format {
  OutputFormat format;
  std::string_view name;
  std::vector<std::string_view> extensions;
  // Writes all embedded records of the spool to `path` and puts it onto the disk. Further files
  // belong to `path` by suffixes of their own (side_files).
  void (*write)(const Spool& spool, const OutputOptions& options,
                const std::filesystem::path& path);
  FileShape (*inspect)(const std::filesystem::path& path);
  void (*read)(const std::filesystem::path& path, const RecordSink& sink);
  std::vector<std::string_view> side_files;  // suffixes of files that go with `path`
};

// All formats: registry.cpp holds a line for each.
const std::vector<Format>& formats();
const Format& format_of(OutputFormat format);

std::string hex_of(const SequenceDigest& digest);

void write_hdf5(const Spool& spool, const OutputOptions& options,
                const std::filesystem::path& path);
FileShape inspect_hdf5(const std::filesystem::path& path);
void read_hdf5(const std::filesystem::path& path, const RecordSink& sink);

void write_npy(const Spool& spool, const OutputOptions& options, const std::filesystem::path& path);
FileShape inspect_npy(const std::filesystem::path& path);
void read_npy(const std::filesystem::path& path, const RecordSink& sink);

void write_safetensors(const Spool& spool, const OutputOptions& options,
                       const std::filesystem::path& path);
FileShape inspect_safetensors(const std::filesystem::path& path);
void read_safetensors(const std::filesystem::path& path, const RecordSink& sink);

void write_jsonl(const Spool& spool, const OutputOptions& options,
                 const std::filesystem::path& path);
FileShape inspect_jsonl(const std::filesystem::path& path);
void read_jsonl(const std::filesystem::path& path, const RecordSink& sink);

void write_lines(const Spool& spool, const OutputOptions& options,
                 const std::filesystem::path& path);
FileShape inspect_lines(const std::filesystem::path& path);
void read_lines(const std::filesystem::path& path, const RecordSink& sink);
// Whether a .jsonl file begins with a line that is not of an embedding.
bool begins_with_lines(const std::filesystem::path& path);
// One line, newline included: {"id": ..., "embedding": [...]}.
std::string jsonl_line(std::string_view id, const SpoolShape& shape, uint64_t n_rows,
                       const std::byte* values);

}  // namespace quintet

#endif  // QUINTET_OUTPUT_FORMATS_H_
