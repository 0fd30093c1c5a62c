// Results on their way to the disk. While a run lasts they stand in OUTPUT.spool (append-only,
// checksummed, resumable); at its end the output file is built from the spool under a temporary
// name, renamed into place, and the spool removed. docs/formats.md tells the whole story.
#ifndef QUINTET_OUTPUT_WRITER_H_
#define QUINTET_OUTPUT_WRITER_H_

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"

namespace quintet {

// kLines: lines of text as the job made them, in a .jsonl file; the others hold embeddings.
enum class OutputFormat { kHdf5, kNpy, kSafetensors, kJsonl, kLines };
enum class Hdf5Layout { kProtTrans, kBioEmbeddings, kTmbed, kFlat };
enum class Existing { kRefuse, kOverwrite, kResume };  // what to do with an output that is there

// One finished record: [n_rows, d_model], or [d_model] where pooled (n_rows is 1 then).
struct Embedding {
  uint64_t ordinal = 0;
  uint64_t line = 0;
  std::string id;
  // What md5 keys are made of: the residues or the text as the reader gave them; for a record of
  // input_ids, sequence_of_ids().
  std::string sequence = {};
  // What was embedded, one letter per row for proteins; only the flat layout holds it. Empty: as
  // `sequence`.
  std::string embedded = {};
  int64_t n_rows = 0;
  std::vector<float> values = {};  // [n_rows, d_model]
};

// A record without an embedding, and why.
struct Rejection {
  uint64_t ordinal = 0;
  uint64_t line = 0;
  std::string id;
  std::string reason;
};

struct OutputOptions {
  // "-": stdout (JSONL only), without spool, resume or rejects file; "": nowhere.
  std::filesystem::path path;
  OutputFormat format = OutputFormat::kHdf5;
  Hdf5Layout layout = Hdf5Layout::kProtTrans;
  DType dtype = DType::kFloat32;  // float32, float16, bfloat16
  bool pooled = false;
  int64_t d_model = 0;
  // A JSON object with everything that decides the contents: model, input, options. A spool is
  // resumed only where it is equal; the message names the keys that differ.
  std::string fingerprint = "{}";
};

struct OutputCounts {
  uint64_t embedded = 0;
  uint64_t rejected = 0;
};

// MD5 of Embedding::sequence.
using SequenceDigest = std::array<uint8_t, 16>;
SequenceDigest digest_of(std::string_view sequence);
// A text that stands for a record of input_ids: equal for equal ids and mask.
std::string sequence_of_ids(const std::vector<int64_t>& input_ids,
                            const std::vector<uint8_t>& attention_mask);

// What an earlier run left in the spool, record by record.
struct SpooledRecord {
  uint64_t ordinal = 0;
  bool rejected = false;
  std::string_view id;
  SequenceDigest digest{};  // zero where rejected
};

// The output of one run. Records arrive in rising order of their ordinals, from one thread.
class Output {
 public:
  virtual ~Output() = default;  // without finish(): a spool that holds records stays for --resume

  // Every record with an ordinal below this one is finished: skip them. 0 for a fresh start.
  virtual uint64_t next_ordinal() const = 0;
  // --resume found a whole file of an equal run: nothing is left to do, counts() are the file's.
  virtual bool complete() const = 0;
  virtual OutputCounts counts() const = 0;
  // Bytes of a half-written record that were cut off the spool when it was opened.
  virtual uint64_t torn_bytes() const = 0;

  // Throw Error(kIo) where the disk is full or fails; the spool is valid and resumable then.
  virtual void append(const Embedding& embedding) = 0;
  // A record with the sequence of an earlier, embedded record: it shares that one's values. Only
  // where shares_values(): what went to stdout is gone.
  virtual bool shares_values() const = 0;
  virtual void append_same(const Embedding& without_values, uint64_t as_ordinal) = 0;
  // What a job of kLines has to say of a record: whole lines, each with its newline.
  virtual void append_lines(const Embedding& without_values, std::string_view lines) = 0;
  virtual void reject(const Rejection& rejection) = 0;
  // Onto the disk now; happens by itself every 5 s or 64 MiB, whichever comes first.
  virtual void flush() = 0;
  // Builds the output file and its side files, removes the spool. Once, as the last call.
  virtual OutputCounts finish() = 0;
};

// By the extension, in any case: .h5 .hdf5 .npy .safetensors .jsonl; "-" is JSONL. Throws
// Error(kUsage).
OutputFormat output_format_of(const std::filesystem::path& path);
Hdf5Layout hdf5_layout_from_name(std::string_view name);  // throws Error(kUsage)
std::string_view layout_name(Hdf5Layout layout);

// Throws Error(kUsage) for what does not go together: .npy without pooling, tmbed in float32, ...
void check_output_options(const OutputOptions& options);

// Throws Error(kUsage) where `existing` forbids what lies there, where another run holds the spool,
// where the spool belongs to a run of another fingerprint, where a whole output is no longer what
// its run wrote, or where one of the files could not be written; Error(kIo) where writing fails.
// With kResume `seen` is called for every finished record, in order.
std::unique_ptr<Output> open_output(const OutputOptions& options, Existing existing,
                                    const std::function<void(const SpooledRecord&)>& seen = {});

// The name under which a record of this id stands in the file. Two records whose keys meet cannot
// both be written: reject the second before it is computed.
std::string output_key(const OutputOptions& options, std::string_view id);
// Not empty: why no record of this id can be written ("__metadata__" in .safetensors).
std::string id_problem(const OutputOptions& options, std::string_view id);

// Joins the outputs of --shard runs (one format, layout, dtype and width) into `output`, in the
// order given, rejects files included. An id that stands in two of them is an Error(kUsage) that
// names both files; different ids whose keys meet: the second is rejected, as in a single run.
OutputCounts merge_outputs(const std::vector<std::filesystem::path>& inputs,
                           const std::filesystem::path& output, Existing existing);

}  // namespace quintet

#endif  // QUINTET_OUTPUT_WRITER_H_
