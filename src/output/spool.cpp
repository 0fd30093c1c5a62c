#include "output/spool.h"

#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/json.h"

namespace quintet {
namespace {

static_assert(std::endian::native == std::endian::little, "the spool is little-endian");

constexpr std::array<char, 8> kMagic = {'Q', 'N', 'T', 'S', 'P', 'O', 'O', 'L'};
constexpr uint32_t kVersion = 1;
constexpr uint32_t kFrameMagic = 0x4D524651;  // "QFRM"
constexpr uint64_t kSyncBytes = uint64_t{64} << 20;
constexpr std::chrono::seconds kSyncInterval{5};
constexpr size_t kChunkBytes = size_t{4} << 20;

struct SpoolHeader {
  std::array<char, 8> magic = kMagic;
  uint32_t version = kVersion;
  uint32_t dtype = 0;
  uint32_t pooled = 0;
  uint32_t fingerprint_bytes = 0;
  int64_t d_model = 0;
};
static_assert(sizeof(SpoolHeader) == 32);

struct FrameHeader {
  uint32_t magic = kFrameMagic;
  uint32_t kind = 0;
  uint64_t ordinal = 0;
  uint64_t line = 0;
  uint64_t n_rows = 0;
  uint64_t payload_bytes = 0;
  uint64_t payload_at = 0;
  uint64_t id_bytes = 0;
  uint64_t text_bytes = 0;
  SequenceDigest digest{};
  uint64_t payload_checksum = 0;
  uint64_t checksum = 0;
};
static_assert(sizeof(FrameHeader) == 96);
constexpr size_t kCheckedHeader = offsetof(FrameHeader, checksum);

uint64_t checksum_of(const FrameHeader& header, const char* id_and_text, size_t size) {
  return XXH3_64bits_withSeed(id_and_text, size, XXH3_64bits(&header, kCheckedHeader));
}

// Says key by key where two fingerprints differ.
std::string difference(const nlohmann::json& before, const nlohmann::json& now) {
  std::vector<std::string> lines;
  const auto add = [&](const std::string& key, const nlohmann::json& a, const nlohmann::json& b) {
    const auto text = [](const nlohmann::json& value) {
      return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    };
    if (a != b) lines.push_back(fmt::format("{} was {}, is {}", key, text(a), text(b)));
  };
  const auto at = [](const nlohmann::json& object, const std::string& key) {
    return object.contains(key) ? object[key] : nlohmann::json();
  };
  for (const auto& [key, value] : before.items()) add(key, value, at(now, key));
  for (const auto& [key, value] : now.items()) {
    if (!before.contains(key)) add(key, nlohmann::json(), value);
  }
  return fmt::format("{}", fmt::join(lines, "; "));
}

nlohmann::json shape_json(const SpoolShape& shape) {
  return {
      {"output_dtype", name_of(shape.dtype)}, {"pooled", shape.pooled}, {"d_model", shape.d_model}};
}

}  // namespace

std::string full_fingerprint(const SpoolShape& shape, const std::string& fingerprint) {
  auto all = parse_json(fingerprint, "fingerprint");
  all.update(shape_json(shape));
  return all.dump();
}

void require_same_run(const std::filesystem::path& path, const std::string& before,
                      const std::string& now) {
  if (before == now) return;
  const auto was = parse_json(before, path.string());
  const auto is = parse_json(now, "fingerprint");
  if (was == is) return;
  fail(ErrorKind::kUsage, "{}: belongs to a run with other settings: {}; --overwrite starts anew",
       path.string(), difference(was, is));
}

Spool::Spool(const std::filesystem::path& path) {
  // Another run may remove the file between opening and locking it: then what is locked is no
  // longer what the name stands for.
  for (;;) {
    file_ = std::make_unique<File>(path, File::Mode::kReadWrite);
    if (!file_->lock()) {
      fail(ErrorKind::kUsage,
           "{}: another run is writing this output; wait for it or choose "
           "another --output",
           path.string());
    }
    struct stat named {};
    struct stat locked {};
    if (::stat(path.c_str(), &named) == 0 && ::fstat(file_->descriptor(), &locked) == 0 &&
        named.st_ino == locked.st_ino && named.st_dev == locked.st_dev) {
      return;
    }
  }
}

void Spool::start(const SpoolShape& shape, const std::string& fingerprint) {
  shape_ = shape;
  fingerprint_ = full_fingerprint(shape, fingerprint);
  SpoolHeader header;
  header.dtype = static_cast<uint32_t>(shape.dtype);
  header.pooled = shape.pooled ? 1 : 0;
  header.fingerprint_bytes = static_cast<uint32_t>(fingerprint_.size());
  header.d_model = shape.d_model;
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof(header));
  bytes += fingerprint_;
  const uint64_t checksum = XXH3_64bits(bytes.data(), bytes.size());
  bytes.append(reinterpret_cast<const char*>(&checksum), sizeof(checksum));
  try {
    file_->truncate(0);
    file_->write_at(0, bytes.data(), bytes.size());
    file_->sync();
  } catch (const Error&) {  // nothing is in it that anybody could resume
    ::unlink(path().c_str());
    throw;
  }
  sync_folder_of(path());
  first_frame_ = end_ = bytes.size();
}

bool Spool::read_header(const SpoolShape& shape, const std::string& fingerprint) {
  SpoolHeader header;
  const uint64_t size = file_->size();
  if (size < sizeof(header)) return false;
  file_->read_at(0, &header, sizeof(header));
  if (header.magic != kMagic) {
    fail(ErrorKind::kFile, "{}: not a spool of quintet; move it away or choose another --output",
         path().string());
  }
  if (header.version != kVersion) {
    fail(ErrorKind::kFile,
         "{}: spool version {}, this program writes {}; finish it with the program "
         "that began it, or --overwrite",
         path().string(), header.version, kVersion);
  }
  const uint64_t bytes = sizeof(header) + header.fingerprint_bytes;
  uint64_t checksum = 0;
  if (size < bytes + sizeof(checksum)) return false;
  std::string text(bytes, '\0');
  file_->read_at(0, text.data(), bytes);
  file_->read_at(bytes, &checksum, sizeof(checksum));
  if (checksum != XXH3_64bits(text.data(), text.size())) return false;
  fingerprint_ = text.substr(sizeof(header));
  require_same_run(path(), fingerprint_, full_fingerprint(shape, fingerprint));
  shape_ = shape;
  first_frame_ = end_ = bytes + sizeof(checksum);
  return true;
}

bool Spool::read_frame(uint64_t at, uint64_t end, Frame& frame, uint64_t& payload_checksum) const {
  FrameHeader header;
  if (end - at < sizeof(header)) return false;
  file_->read_at(at, &header, sizeof(header));
  uint64_t left = end - at - sizeof(header);
  if (header.magic != kFrameMagic || header.id_bytes > left) return false;
  left -= header.id_bytes;
  if (header.text_bytes > left) return false;
  left -= header.text_bytes;
  std::string text(header.id_bytes + header.text_bytes, '\0');
  file_->read_at(at + sizeof(header), text.data(), text.size());
  if (checksum_of(header, text.data(), text.size()) != header.checksum) return false;
  const auto kind = static_cast<FrameKind>(header.kind);
  const uint64_t payload_begin = at + sizeof(header) + text.size();
  if (kind == FrameKind::kEmbedding) {
    if (header.payload_at != payload_begin || header.payload_bytes > left) return false;
  } else if (kind == FrameKind::kSame) {
    if (header.payload_at > at || header.payload_bytes > at - header.payload_at) return false;
  } else if (kind != FrameKind::kRejected || header.payload_bytes != 0) {
    return false;
  }
  uint64_t expected = 0;
  const auto row_bytes = static_cast<uint64_t>(shape_.d_model) * size_of(shape_.dtype);
  if (__builtin_mul_overflow(header.n_rows, row_bytes, &expected) ||
      expected != header.payload_bytes) {
    return false;
  }
  frame.kind = kind;
  frame.ordinal = header.ordinal;
  frame.line = header.line;
  frame.id = text.substr(0, header.id_bytes);
  frame.text = text.substr(header.id_bytes);
  frame.digest = header.digest;
  frame.n_rows = header.n_rows;
  frame.payload_at = header.payload_at;
  frame.payload_bytes = header.payload_bytes;
  payload_checksum = header.payload_checksum;
  return true;
}

namespace {

// Where the frame after this one starts.
uint64_t end_of(const Frame& frame, uint64_t at) {
  return at + sizeof(FrameHeader) + frame.id.size() + frame.text.size() +
         (frame.kind == FrameKind::kEmbedding ? frame.payload_bytes : 0);
}

uint64_t checksum_of_range(const File& file, uint64_t at, uint64_t size,
                           std::vector<std::byte>& buffer) {
  buffer.resize(std::min<uint64_t>(size, kChunkBytes));
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(),
                                                                       XXH3_freeState);
  XXH3_64bits_reset(state.get());
  while (size > 0) {
    const size_t n = std::min<uint64_t>(size, kChunkBytes);
    file.read_at(at, buffer.data(), n);
    XXH3_64bits_update(state.get(), buffer.data(), n);
    at += n;
    size -= n;
  }
  return XXH3_64bits_digest(state.get());
}

}  // namespace

bool Spool::resume(const SpoolShape& shape, const std::string& fingerprint,
                   const std::function<void(const Frame&)>& seen) {
  if (!read_header(shape, fingerprint)) return false;
  const uint64_t size = file_->size();
  Frame frame;
  uint64_t payload_checksum = 0;
  std::vector<std::byte> buffer;
  while (read_frame(end_, size, frame, payload_checksum)) {
    if (frame.ordinal < next_ordinal_) break;  // frames rise: this one is not from this run
    if (frame.kind == FrameKind::kEmbedding &&
        checksum_of_range(*file_, frame.payload_at, frame.payload_bytes, buffer) !=
            payload_checksum) {
      break;
    }
    count(frame, end_);
    end_ = end_of(frame, end_);
    if (seen) seen(frame);
  }
  torn_bytes_ = size - end_;
  if (torn_bytes_ > 0) file_->truncate(end_);
  return true;
}

void Spool::count(const Frame& frame, uint64_t at) {
  next_ordinal_ = frame.ordinal + 1;
  if (frame.kind == FrameKind::kRejected) {
    ++counts_.rejected;
  } else {
    ++counts_.embedded;
    embedded_.emplace_back(frame.ordinal, at);
  }
}

void Spool::append(const Frame& frame, const std::vector<std::byte>& payload) {
  Frame complete = frame;
  complete.payload_at = end_ + sizeof(FrameHeader) + frame.id.size() + frame.text.size();
  complete.payload_bytes = payload.size();
  if (frame.kind == FrameKind::kRejected) complete.payload_at = 0;
  write_frame(complete, payload.data(), payload.size(),
              XXH3_64bits(payload.data(), payload.size()));
}

void Spool::append_same(const Frame& frame, uint64_t as_ordinal) {
  const auto found = std::lower_bound(embedded_.begin(), embedded_.end(),
                                      std::pair<uint64_t, uint64_t>(as_ordinal, 0));
  Frame source;
  uint64_t payload_checksum = 0;
  if (found == embedded_.end() || found->first != as_ordinal ||
      !read_frame(found->second, end_, source, payload_checksum)) {
    fail(ErrorKind::kIo, "{}: record {} is not in it, its values cannot be shared", path().string(),
         as_ordinal);
  }
  Frame complete = frame;
  complete.kind = FrameKind::kSame;
  complete.n_rows = source.n_rows;
  complete.payload_at = source.payload_at;
  complete.payload_bytes = source.payload_bytes;
  write_frame(complete, nullptr, 0, payload_checksum);
}

void Spool::write_frame(const Frame& frame, const void* payload, size_t payload_bytes,
                        uint64_t payload_checksum) {
  if (frame.ordinal < next_ordinal_) {
    fail(ErrorKind::kUsage, "{}: record {} comes after record {}", path().string(), frame.ordinal,
         next_ordinal_ - 1);
  }
  FrameHeader header;
  header.kind = static_cast<uint32_t>(frame.kind);
  header.ordinal = frame.ordinal;
  header.line = frame.line;
  header.n_rows = frame.n_rows;
  header.payload_bytes = frame.payload_bytes;
  header.payload_at = frame.payload_at;
  header.id_bytes = frame.id.size();
  header.text_bytes = frame.text.size();
  header.digest = frame.digest;
  header.payload_checksum = payload_checksum;
  const std::string text = frame.id + frame.text;
  header.checksum = checksum_of(header, text.data(), text.size());
  std::string head(reinterpret_cast<const char*>(&header), sizeof(header));
  head += text;
  try {
    file_->write_at(end_, head.data(), head.size());
    file_->write_at(end_ + head.size(), payload, payload_bytes);
    unsynced_ += head.size() + payload_bytes;
    if (unsynced_ >= kSyncBytes || std::chrono::steady_clock::now() - last_sync_ >= kSyncInterval) {
      flush();
    }
  } catch (const Error& error) {
    if (::ftruncate(file_->descriptor(), static_cast<off_t>(end_)) != 0) {
      // The half frame stays behind the last whole one; the next --resume finds and cuts it.
    }
    fail(ErrorKind::kIo, "{}; {} records are safe: make room and run again with --resume",
         error.what(), counts_.embedded + counts_.rejected);
  }
  count(frame, end_);
  end_ += head.size() + payload_bytes;
}

void Spool::flush() {
  file_->sync();
  unsynced_ = 0;
  last_sync_ = std::chrono::steady_clock::now();
}

void Spool::each(const std::function<void(const Frame&)>& use) const {
  Frame frame;
  uint64_t payload_checksum = 0;
  for (uint64_t at = first_frame_; at < end_; at = end_of(frame, at)) {
    if (!read_frame(at, end_, frame, payload_checksum)) {
      fail(ErrorKind::kIo, "{}: damaged at byte {} since it was written; run again with --resume",
           path().string(), at);
    }
    use(frame);
  }
}

void Spool::read_payload(const Frame& frame, std::vector<std::byte>& payload) const {
  payload.resize(frame.payload_bytes);
  file_->read_at(frame.payload_at, payload.data(), payload.size());
}

}  // namespace quintet
