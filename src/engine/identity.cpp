#include "engine/identity.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.h"

namespace quintet {
namespace {

namespace fs = std::filesystem;

class Hash {
 public:
  Hash() : state_(XXH3_createState()) { XXH3_64bits_reset(state_); }
  ~Hash() { XXH3_freeState(state_); }
  Hash(const Hash&) = delete;
  Hash& operator=(const Hash&) = delete;

  void add(const void* data, size_t size) { XXH3_64bits_update(state_, data, size); }
  void add(const std::string& text) { add(text.c_str(), text.size() + 1); }
  // At most `most` bytes from `offset` on; a file that is not there adds nothing.
  void add_file(const fs::path& path, size_t most, int64_t offset = 0) {
    std::ifstream file(path, std::ios::binary);
    file.seekg(offset);
    std::array<char, 65536> bytes;
    while (most > 0 &&
           file.read(bytes.data(), static_cast<std::streamsize>(std::min(most, bytes.size())))
                   .gcount() > 0) {
      const auto n_read = static_cast<size_t>(file.gcount());
      add(bytes.data(), n_read);
      most -= n_read;
    }
  }
  // The beginning, the middle and the end.
  void add_samples(const std::byte* data, size_t size) {
    constexpr size_t kSample = 256;
    if (size <= 3 * kSample) return add(data, size);
    for (const size_t at : {size_t{0}, (size - kSample) / 2, size - kSample}) {
      add(data + at, kSample);
    }
  }
  std::string text() const { return fmt::format("{:016x}", XXH3_64bits_digest(state_)); }

 private:
  XXH3_state_t* state_;
};

// Config, the list of tensors, and samples of each: other weights of the same shape differ.
std::string model_identity(const Options& options, const Checkpoint& checkpoint) {
  Hash hash;
  hash.add_file(fs::path(options.model) / "config.json", size_t{1} << 20);
  for (const auto& [name, view] : checkpoint.tensors()) {
    hash.add(name);
    hash.add(fmt::format("{} {}", name_of(view.dtype), fmt::join(view.shape, "x")));
    size_t bytes = size_of(view.dtype);
    for (const int64_t extent : view.shape) bytes *= static_cast<size_t>(extent);
    hash.add_samples(view.data, bytes);
    view.release_rows(0, view.rows());
  }
  return hash.text();
}

std::string tokenizer_identity(const Options& options) {
  Hash hash;
  for (const char* name :
       {"tokenizer.json", "spiece.model", "added_tokens.json", "tokenizer_config.json",
        "special_tokens_map.json", "vocab.json", "merges.txt"}) {
    hash.add_file(fs::path(options.model) / name, size_t{64} << 20);
  }
  return hash.text();
}

std::string name_of(OnDuplicate what) {
  switch (what) {
    case OnDuplicate::kReject:
      return "reject";
    case OnDuplicate::kRename:
      return "rename";
    case OnDuplicate::kFirst:
      return "first";
  }
  return "";
}

std::string name_of(const std::optional<Pooling>& pool) {
  if (!pool) return "none";
  switch (*pool) {
    case Pooling::kMean:
      return "mean";
    case Pooling::kFirst:
      return "first";
    case Pooling::kLast:
      return "last";
  }
  return "";
}

// Size, beginning and end of the input.
std::string input_identity(const std::string& input) {
  if (input == "-" || !fs::is_regular_file(input)) return "a stream";
  constexpr size_t kSample = size_t{1} << 20;
  const auto size = static_cast<int64_t>(fs::file_size(input));
  Hash hash;
  hash.add_file(input, kSample);
  hash.add_file(input, kSample, std::max<int64_t>(0, size - static_cast<int64_t>(kSample)));
  return fmt::format("{} bytes, {}", size, hash.text());
}

using nlohmann::ordered_json;

std::string text_of(const ordered_json& run) {
  return run.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

// What every job's results depend on.
ordered_json common_identity(const Options& options, const Checkpoint& checkpoint,
                             const std::string& reading, DType dtype) {
  ordered_json run;
  run["model"] = model_identity(options, checkpoint);
  run["tokenizer"] = tokenizer_identity(options);
  run["input"] = input_identity(options.input);
  run["dtype"] = quintet::name_of(dtype);
  run["reading"] = reading;
  run["rare-residues"] = options.protein.rare_residues;
  run["prefix"] = options.protein.prefix;
  run["stop-as-x"] = options.protein.stop_as_x;
  run["max-tokens"] = options.max_tokens;
  run["skip-empty"] = options.skip_empty;
  run["on-duplicate"] = name_of(options.on_duplicate);
  run["shard"] = fmt::format("{}/{}", options.shard_index + 1, options.shard_count);
  return run;
}

}  // namespace

std::string run_identity(const Options& options, const Checkpoint& checkpoint,
                         const std::string& reading, DType dtype) {
  ordered_json run = common_identity(options, checkpoint, reading, dtype);
  run["pool"] = name_of(options.pool);
  run["normalize"] = options.normalize;
  run["masked-rows"] = options.drop_masked_rows ? "drop" : "zero";
  return text_of(run);
}

std::string generation_identity(const Options& options, const std::string& command,
                                const Checkpoint& checkpoint, const std::string& reading,
                                DType dtype) {
  constexpr size_t kMostBytes = size_t{1} << 20;
  ordered_json run = common_identity(options, checkpoint, reading, dtype);
  run["command"] = command;
  Hash hash;
  hash.add_file(fs::path(options.model) / "generation_config.json", kMostBytes);
  hash.add_file(options.generation_config, kMostBytes);
  run["generation config"] = hash.text();
  for (const auto& [name, value] : options.generation) run["options"][name] = value;
  run["skip-special-tokens"] = options.skip_special_tokens;
  run["add-bos"] = options.add_bos;
  run["choices"] = options.choices;
  return text_of(run);
}

}  // namespace quintet
