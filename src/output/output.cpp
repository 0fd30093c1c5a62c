#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <cstring>
#include <span>

#include "core/error.h"
#include "output/file.h"
#include "output/finalise.h"
#include "output/formats.h"
#include "output/paths.h"
#include "output/writer.h"

namespace quintet {
namespace {

std::vector<std::byte> payload_of(const Embedding& embedding, const OutputOptions& options) {
  assert(embedding.values.size() == static_cast<size_t>(embedding.n_rows * options.d_model));
  std::vector<std::byte> payload(embedding.values.size() * size_of(options.dtype));
  narrow(embedding.values.data(), embedding.values.size(), options.dtype, payload.data());
  return payload;
}

SpoolShape shape_of(const OutputOptions& options) {
  if (options.format == OutputFormat::kLines) {  // a byte of text is a row
    return {.dtype = DType::kUInt8, .pooled = false, .d_model = 1};
  }
  return {.dtype = options.dtype, .pooled = options.pooled, .d_model = options.d_model};
}

class SpooledOutput final : public Output {
 public:
  SpooledOutput(OutputOptions options, std::unique_ptr<Spool> spool)
      : options_(std::move(options)), spool_(std::move(spool)) {}

  ~SpooledOutput() override {
    if (!finished_ && next_ordinal() == 0) {  // nothing in it that could be lost
      std::error_code ignored;
      std::filesystem::remove(spool_->path(), ignored);
    }
  }

  uint64_t next_ordinal() const override { return spool_->next_ordinal(); }
  bool complete() const override { return false; }
  OutputCounts counts() const override { return spool_->counts(); }
  uint64_t torn_bytes() const override { return spool_->torn_bytes(); }

  void append(const Embedding& embedding) override {
    spool_->append(frame_of(embedding), payload_of(embedding, options_));
  }

  bool shares_values() const override { return true; }

  void append_same(const Embedding& without_values, uint64_t as_ordinal) override {
    spool_->append_same(frame_of(without_values), as_ordinal);
  }

  void append_lines(const Embedding& without_values, std::string_view lines) override {
    Frame frame = frame_of(without_values);
    frame.n_rows = lines.size();
    const auto bytes = std::as_bytes(std::span(lines));
    spool_->append(frame, {bytes.begin(), bytes.end()});
  }

  void reject(const Rejection& rejection) override {
    Frame frame;
    frame.kind = FrameKind::kRejected;
    frame.ordinal = rejection.ordinal;
    frame.line = rejection.line;
    frame.id = rejection.id;
    frame.text = rejection.reason;
    spool_->append(frame, {});
  }

  void flush() override { spool_->flush(); }

  OutputCounts finish() override {
    // The output is on the disk before the spool goes, so the spool's last seconds need not be.
    finalise(*spool_, options_);
    finished_ = true;
    return spool_->counts();
  }

 private:
  static Frame frame_of(const Embedding& embedding) {
    Frame frame;
    frame.ordinal = embedding.ordinal;
    frame.line = embedding.line;
    frame.id = embedding.id;
    frame.text = embedding.embedded.empty() ? embedding.sequence : embedding.embedded;
    frame.digest = digest_of(embedding.sequence);
    frame.n_rows = static_cast<uint64_t>(embedding.n_rows);
    return frame;
  }

  OutputOptions options_;
  std::unique_ptr<Spool> spool_;
  bool finished_ = false;
};

// --resume of a run that has ended.
class CompleteOutput final : public Output {
 public:
  explicit CompleteOutput(OutputCounts counts) : counts_(counts) {}
  uint64_t next_ordinal() const override { return UINT64_MAX; }
  bool complete() const override { return true; }
  OutputCounts counts() const override { return counts_; }
  uint64_t torn_bytes() const override { return 0; }
  void append(const Embedding& /*embedding*/) override { refuse(); }
  bool shares_values() const override { return false; }
  void append_same(const Embedding& /*embedding*/, uint64_t /*as_ordinal*/) override { refuse(); }
  void append_lines(const Embedding& /*embedding*/, std::string_view /*lines*/) override {
    refuse();
  }
  void reject(const Rejection& /*rejection*/) override { refuse(); }
  void flush() override {}
  OutputCounts finish() override { return counts_; }

 private:
  [[noreturn]] static void refuse() {
    fail(ErrorKind::kUsage, "the output is complete, no record can be added");
  }
  OutputCounts counts_;
};

// JSONL straight to stdout, a line at a time.
class StdoutOutput final : public Output {
 public:
  explicit StdoutOutput(OutputOptions options) : options_(std::move(options)) {}
  uint64_t next_ordinal() const override { return 0; }
  bool complete() const override { return false; }
  OutputCounts counts() const override { return counts_; }
  uint64_t torn_bytes() const override { return 0; }

  void append(const Embedding& embedding) override {
    const auto payload = payload_of(embedding, options_);
    buffer_ += jsonl_line(embedding.id, shape_of(options_), static_cast<uint64_t>(embedding.n_rows),
                          payload.data());
    ++counts_.embedded;
    flush();
  }

  void append_lines(const Embedding& /*without_values*/, std::string_view lines) override {
    buffer_ += lines;
    ++counts_.embedded;
    flush();
  }

  bool shares_values() const override { return false; }
  void append_same(const Embedding& /*embedding*/, uint64_t as_ordinal) override {
    fail(ErrorKind::kUsage, "stdout: the values of record {} are gone, give them again",
         as_ordinal);
  }
  void reject(const Rejection& /*rejection*/) override { ++counts_.rejected; }

  void flush() override {
    size_t done = 0;
    while (done < buffer_.size()) {
      const ssize_t n = ::write(STDOUT_FILENO, buffer_.data() + done, buffer_.size() - done);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail(ErrorKind::kIo, "stdout: cannot write: {}", std::strerror(errno));
      done += static_cast<size_t>(n);
    }
    buffer_.clear();
  }

  OutputCounts finish() override { return counts_; }

 private:
  OutputOptions options_;
  std::string buffer_;
  OutputCounts counts_;
};

// Nowhere: the caller shows the results in another way.
class NoOutput final : public Output {
 public:
  uint64_t next_ordinal() const override { return 0; }
  bool complete() const override { return false; }
  OutputCounts counts() const override { return counts_; }
  uint64_t torn_bytes() const override { return 0; }
  void append(const Embedding& /*embedding*/) override { ++counts_.embedded; }
  void append_lines(const Embedding& /*without_values*/, std::string_view /*lines*/) override {
    ++counts_.embedded;
  }
  bool shares_values() const override { return true; }
  void append_same(const Embedding& /*without_values*/, uint64_t /*as_ordinal*/) override {
    ++counts_.embedded;
  }
  void reject(const Rejection& /*rejection*/) override { ++counts_.rejected; }
  void flush() override {}
  OutputCounts finish() override { return counts_; }

 private:
  OutputCounts counts_;
};

void refuse_existing(const std::filesystem::path& output, const std::filesystem::path& spool) {
  if (std::filesystem::exists(output)) {
    fail(ErrorKind::kUsage,
         "{}: is there already; --overwrite replaces it, --resume continues a run",
         output.string());
  }
  if (std::filesystem::exists(spool)) {
    fail(ErrorKind::kUsage,
         "{}: an unfinished run has left it; --resume continues there, --overwrite starts anew",
         spool.string());
  }
}

// The output as an ended run has left it, if there is one; throws where it is of another run.
std::unique_ptr<Output> find_complete(const OutputOptions& options) {
  if (!std::filesystem::exists(options.path)) return nullptr;
  const auto info = read_run_info(options.path);
  if (!info) {
    fail(ErrorKind::kUsage,
         "{}: is there, but {} is not, so it cannot be resumed; --overwrite "
         "replaces it",
         options.path.string(), with_suffix(options.path, kRunSuffix).string());
  }
  const std::string full = full_fingerprint(shape_of(options), options.fingerprint);
  require_same_run(options.path, info->fingerprint, file_fingerprint(full, options));
  require_unchanged(options.path, *info);
  return std::make_unique<CompleteOutput>(info->counts);
}

}  // namespace

std::unique_ptr<Output> open_output(const OutputOptions& options, Existing existing,
                                    const std::function<void(const SpooledRecord&)>& seen) {
  if (options.path.empty()) return std::make_unique<NoOutput>();
  check_output_options(options);
  if (options.path == "-") {
    if (existing == Existing::kResume) {
      fail(ErrorKind::kUsage, "--resume: what went to stdout cannot be continued; name a file");
    }
    return std::make_unique<StdoutOutput>(options);
  }
  const auto spool_path = with_suffix(options.path, kSpoolSuffix);
  if (existing == Existing::kResume && !std::filesystem::exists(spool_path)) {
    if (auto complete = find_complete(options)) return complete;
  }
  for (const NamedPath& file : output_files(options)) check_writable(file.path, file.option);
  if (existing == Existing::kRefuse) refuse_existing(options.path, spool_path);
  auto spool = std::make_unique<Spool>(spool_path);
  const auto use = [&](const Frame& frame) {
    if (!seen) return;
    seen({.ordinal = frame.ordinal,
          .rejected = frame.kind == FrameKind::kRejected,
          .id = frame.id,
          .digest = frame.digest});
  };
  const SpoolShape shape = shape_of(options);
  if (existing != Existing::kResume || !spool->resume(shape, options.fingerprint, use)) {
    spool->start(shape, options.fingerprint);
  }
  return std::make_unique<SpooledOutput>(options, std::move(spool));
}

}  // namespace quintet
