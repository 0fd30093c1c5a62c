// Results on their way to the disk: spool (append-only, checksummed, resumable), then the file.
#ifndef QUINTET_OUTPUT_WRITER_H_
#define QUINTET_OUTPUT_WRITER_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/dtype.h"

namespace quintet {

enum class OutputFormat { kHdf5, kNpy, kSafetensors, kJsonl };
enum class Hdf5Layout { kProtTrans, kBioEmbeddings, kTmbed, kFlat };

// One finished record: [n_rows, d_model], or [d_model] where pooled.
struct Embedding {
  uint64_t ordinal = 0;
  std::string id;
  std::string sequence;  // what md5 keys are made of: the residues or the text
  bool pooled = false;
  int64_t n_rows = 0;
  int64_t d_model = 0;
  std::vector<float> values;
};

struct OutputOptions {
  std::filesystem::path path;  // "-": stdout (JSONL only)
  OutputFormat format = OutputFormat::kHdf5;
  Hdf5Layout layout = Hdf5Layout::kProtTrans;
  DType dtype = DType::kFloat32;
  bool pooled = false;
  int64_t d_model = 0;
  std::string fingerprint;  // of everything that decides the contents: model, input, options
};

}  // namespace quintet

#endif  // QUINTET_OUTPUT_WRITER_H_
