// The file formats, a line for each, and which of them goes with which options.
#include <cctype>
#include <string>

#include "core/error.h"
#include "output/formats.h"

namespace quintet {

const std::vector<Format>& formats() {
  static const std::vector<Format> kFormats = {
      {OutputFormat::kHdf5, "hdf5", {".h5", ".hdf5"}, write_hdf5, inspect_hdf5, read_hdf5, {}},
      {OutputFormat::kNpy, "npy", {".npy"}, write_npy, inspect_npy, read_npy, {".ids.txt"}},
      {OutputFormat::kSafetensors,
       "safetensors",
       {".safetensors"},
       write_safetensors,
       inspect_safetensors,
       read_safetensors,
       {}},
      {OutputFormat::kJsonl, "jsonl", {".jsonl"}, write_jsonl, inspect_jsonl, read_jsonl, {}},
      {OutputFormat::kLines, "lines", {}, write_lines, inspect_lines, read_lines, {}},
  };
  return kFormats;
}

const Format& format_of(OutputFormat format) {
  for (const Format& entry : formats()) {
    if (entry.format == format) return entry;
  }
  fail(ErrorKind::kUsage, "output format {} is not in the registry", static_cast<int>(format));
}

OutputFormat output_format_of(const std::filesystem::path& path) {
  if (path == "-") return OutputFormat::kJsonl;
  std::string given = path.extension().string();
  for (char& c : given) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  std::vector<std::string_view> known;
  for (const Format& entry : formats()) {
    for (const auto extension : entry.extensions) {
      if (given == extension) return entry.format;
      known.push_back(extension);
    }
  }
  fail(ErrorKind::kUsage, "--output {}: the extension names the format: {}; '-' is JSONL on stdout",
       path.string(), fmt::join(known, ", "));
}

void check_output_options(const OutputOptions& options) {
  const std::string name = options.path.string();
  if (options.dtype != DType::kFloat32 && options.dtype != DType::kFloat16 &&
      options.dtype != DType::kBFloat16) {
    fail(ErrorKind::kUsage, "--output-dtype {}: expected float32, float16 or bfloat16",
         name_of(options.dtype));
  }
  if (name == "-" && options.format != OutputFormat::kJsonl &&
      options.format != OutputFormat::kLines) {
    fail(ErrorKind::kUsage, "--output -: only JSONL goes to stdout; name a file for {}",
         format_of(options.format).name);
  }
  if (std::filesystem::is_directory(options.path)) {
    fail(ErrorKind::kUsage, "--output {}: is a folder; name a file in it", name);
  }
  if (options.layout != Hdf5Layout::kProtTrans && options.format != OutputFormat::kHdf5) {
    fail(ErrorKind::kUsage, "--layout {}: is for .h5 files, --output {} is {}; leave one of them",
         layout_name(options.layout), name, format_of(options.format).name);
  }
  if (options.format == OutputFormat::kNpy && !options.pooled) {
    fail(ErrorKind::kUsage,
         "--output {}: .npy holds one vector per record; add --pool mean, or write "
         ".h5 or .safetensors",
         name);
  }
  if (options.format == OutputFormat::kNpy && options.dtype == DType::kBFloat16) {
    fail(ErrorKind::kUsage,
         "--output {}: .npy has no bfloat16; use --output-dtype float16 or float32, "
         "or write .safetensors",
         name);
  }
  if (options.format == OutputFormat::kHdf5 && options.layout == Hdf5Layout::kTmbed) {
    if (options.dtype != DType::kFloat16) {
      fail(ErrorKind::kUsage, "--layout tmbed: is float16, not {}; use --output-dtype float16",
           name_of(options.dtype));
    }
    if (options.pooled) {
      fail(ErrorKind::kUsage, "--layout tmbed: holds one row per residue; leave --pool out");
    }
  }
}

std::string output_key(const OutputOptions& options, std::string_view id) {
  std::string key(id);
  if (options.format != OutputFormat::kHdf5 || options.layout != Hdf5Layout::kProtTrans) return key;
  for (char& c : key) {
    if (c == '/' || c == '.') c = '_';
  }
  return key;
}

std::string id_problem(const OutputOptions& options, std::string_view id) {
  constexpr size_t kMaxKeyBytes = 32768;  // half of what an HDF5 header can hold
  if (id.empty()) return "the id is empty";
  if (id.find('\0') != std::string_view::npos) return "the id holds a NUL byte";
  if (options.format == OutputFormat::kSafetensors && id == "__metadata__") {
    return "the id '__metadata__' is reserved in .safetensors";
  }
  if (options.format == OutputFormat::kHdf5 && id.size() > kMaxKeyBytes) {
    return fmt::format("the id has {} bytes, a key in HDF5 at most {}", id.size(), kMaxKeyBytes);
  }
  return "";
}

}  // namespace quintet
