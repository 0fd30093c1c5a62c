// The spool: what a run has finished, record after record, in a file that is only appended to.
//
//   header: magic[8] version:u32 dtype:u32 pooled:u32 n:u32 d_model:i64 fingerprint[n] checksum:u64
//   frame:  magic:u32 kind:u32, ordinal line rows payload_bytes payload_at id_bytes text_bytes: u64
//           each, digest[16], payload_checksum:u64, checksum:u64, id, text, payload
//
// All little-endian. `checksum` is XXH3-64 over what stands before it, in a frame also over id and
// text, so that frames can be listed without reading the payloads.
#ifndef QUINTET_OUTPUT_SPOOL_H_
#define QUINTET_OUTPUT_SPOOL_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/dtype.h"
#include "output/file.h"
#include "output/writer.h"

namespace quintet {

enum class FrameKind : uint32_t { kEmbedding = 1, kSame = 2, kRejected = 3 };

// One record in the spool, without its values.
struct Frame {
  FrameKind kind = FrameKind::kEmbedding;
  uint64_t ordinal = 0;
  uint64_t line = 0;
  std::string id;
  std::string text;  // what was embedded; of a rejected record: the reason
  SequenceDigest digest{};
  uint64_t n_rows = 0;
  uint64_t payload_at = 0;  // where the values stand in the spool; kSame: another record's
  uint64_t payload_bytes = 0;
};

// What every frame of a spool shares.
struct SpoolShape {
  DType dtype = DType::kFloat32;
  bool pooled = false;
  int64_t d_model = 0;
};

// The caller's fingerprint and the shape as one JSON object.
std::string full_fingerprint(const SpoolShape& shape, const std::string& fingerprint);
// Throws Error(kUsage) that names each key in which two full fingerprints differ.
void require_same_run(const std::filesystem::path& path, const std::string& before,
                      const std::string& now);

class Spool {
 public:
  // Opens or creates, and locks. Throws Error(kUsage) where another process holds it.
  explicit Spool(const std::filesystem::path& path);

  // Writes a fresh header; whatever was there is gone. Where that fails, so is the file.
  void start(const SpoolShape& shape, const std::string& fingerprint);
  // Reads what is there: checks header, fingerprint and every checksum, calls `seen` per frame and
  // cuts off what a crash left half-written. False where there is no whole header: start().
  bool resume(const SpoolShape& shape, const std::string& fingerprint,
              const std::function<void(const Frame&)>& seen);

  void append(const Frame& frame, const std::vector<std::byte>& payload);  // offsets are filled in
  void append_same(const Frame& frame, uint64_t as_ordinal);
  void flush();

  // Goes through all frames, in order. `payload` is read only on demand.
  void each(const std::function<void(const Frame&)>& use) const;
  void read_payload(const Frame& frame, std::vector<std::byte>& payload) const;

  const std::filesystem::path& path() const { return file_->path(); }
  const SpoolShape& shape() const { return shape_; }
  const std::string& fingerprint() const { return fingerprint_; }
  uint64_t next_ordinal() const { return next_ordinal_; }
  OutputCounts counts() const { return counts_; }
  uint64_t torn_bytes() const { return torn_bytes_; }
  uint64_t size() const { return end_; }

 private:
  bool read_header(const SpoolShape& shape, const std::string& fingerprint);
  void write_frame(const Frame& frame, const void* payload, size_t payload_bytes,
                   uint64_t payload_checksum);
  void count(const Frame& frame, uint64_t at);
  // The frame at `at`, and where the next one starts; false where none stands whole.
  bool read_frame(uint64_t at, uint64_t end, Frame& frame, uint64_t& payload_checksum) const;

  std::unique_ptr<File> file_;
  SpoolShape shape_;
  std::string fingerprint_;
  uint64_t first_frame_ = 0;
  uint64_t end_ = 0;  // of the last whole frame
  uint64_t next_ordinal_ = 0;
  uint64_t torn_bytes_ = 0;
  OutputCounts counts_;
  // (ordinal, position of its frame) of every embedded record, rising: append_same() looks it up.
  std::vector<std::pair<uint64_t, uint64_t>> embedded_;
  uint64_t unsynced_ = 0;
  std::chrono::steady_clock::time_point last_sync_ = std::chrono::steady_clock::now();
};

}  // namespace quintet

#endif  // QUINTET_OUTPUT_SPOOL_H_
