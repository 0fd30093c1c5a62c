#include "weights/safetensors.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "core/json.h"
#include "weights/byte_cursor.h"

namespace quintet {
namespace {

using nlohmann::json;

constexpr uint64_t kMaxHeader = 100'000'000;  // as in the format's own library
constexpr size_t kMaxRank = 64;
// Far more than any encoder has; a header of 100 MB could hold millions.
constexpr size_t kMaxTensors = 50'000;
constexpr size_t kMaxMetadata = 10'000;

struct StoredType {
  std::string_view name;
  uint64_t bits;
  std::optional<DType> dtype;  // none: such tensors are skipped
};

constexpr std::array<StoredType, 21> kTypes{{
    {"F32", 32, DType::kFloat32}, {"BF16", 16, DType::kBFloat16}, {"F16", 16, DType::kFloat16},
    {"F64", 64, std::nullopt},    {"BOOL", 8, std::nullopt},      {"U8", 8, std::nullopt},
    {"I8", 8, std::nullopt},      {"U16", 16, std::nullopt},      {"I16", 16, std::nullopt},
    {"U32", 32, std::nullopt},    {"I32", 32, std::nullopt},      {"U64", 64, std::nullopt},
    {"I64", 64, std::nullopt},    {"C64", 64, std::nullopt},      {"F8_E5M2", 8, std::nullopt},
    {"F8_E4M3", 8, std::nullopt}, {"F8_E8M0", 8, std::nullopt},   {"F8_E4M3FNUZ", 8, std::nullopt},
    {"F4", 4, std::nullopt},      {"F6_E2M3", 6, std::nullopt},   {"F6_E3M2", 6, std::nullopt},
}};

struct Entry {
  std::string name;
  const StoredType* type = nullptr;
  std::vector<int64_t> shape = {};
  std::array<int64_t, 2> offsets = {};  // begin and end in the data, once complete
};

std::string too_many_tensors() {
  return fmt::format("more than {} tensors, none of the known models has so many", kMaxTensors);
}

// Takes the header's events as they come and keeps the entries, no tree: a header can have only one
// form, and whatever else turns up stops the parser there and then. Problems are kept, as the
// parser's callbacks report failure by returning false.
class HeaderSax : public nlohmann::json_sax<json> {
 public:
  std::vector<Entry> entries;
  std::string problem;

  bool start_object(size_t /*size*/) override {
    switch (state_) {
      case State::kStart:
        state_ = State::kNames;
        return true;
      case State::kNames:
        state_ = in_metadata_ ? State::kMetadata : State::kEntry;
        keys_.clear();
        seen_ = 0;
        n_offsets_ = 0;
        return true;
      default:
        return unexpected("an object");
    }
  }

  bool key(std::string& key) override {
    if (state_ == State::kNames) return name(key);
    if (state_ == State::kMetadata) return metadata_key(key);
    const auto* known = std::find(kKeys.begin(), kKeys.end(), key);
    if (known == kKeys.end()) {
      return refuse("{}: unknown key '{}', expected dtype, shape and data_offsets", at(),
                    printable(key));
    }
    key_ = static_cast<Key>(known - kKeys.begin());
    if ((seen_ & bit(key_)) != 0) return refuse("{}: key '{}' stands twice", at(), key);
    seen_ |= bit(key_);
    return true;
  }

  bool end_object() override {
    if (state_ == State::kEntry && seen_ != (bit(kDtype) | bit(kShape) | bit(kOffsets))) {
      return refuse("{}: lacks one of dtype, shape, data_offsets", at());
    }
    if (state_ == State::kEntry && n_offsets_ != 2) {
      return refuse("{}: data_offsets has {} numbers, expected 2", at(), n_offsets_);
    }
    state_ = State::kNames;
    return true;
  }

  bool start_array(size_t /*size*/) override {
    if (state_ != State::kEntry || key_ == kDtype) return unexpected("an array");
    state_ = State::kNumbers;
    return true;
  }

  bool end_array() override {
    state_ = State::kEntry;
    return true;
  }

  bool string(std::string& value) override {
    if (state_ == State::kMetadata) return true;
    if (state_ != State::kEntry || key_ != kDtype) return unexpected("a string");
    const auto* type = std::find_if(kTypes.begin(), kTypes.end(),
                                    [&](const StoredType& t) { return t.name == value; });
    if (type == kTypes.end()) return refuse("{}: unknown dtype '{}'", at(), printable(value));
    entries.back().type = type;
    return true;
  }

  bool number_unsigned(uint64_t value) override {
    if (state_ != State::kNumbers) return unexpected("a number");
    if (value > INT64_MAX) return refuse("{}: {} {} is out of range", at(), kKeys[key_], value);
    const auto number = static_cast<int64_t>(value);
    Entry& entry = entries.back();
    if (key_ == kOffsets) {
      if (n_offsets_ < entry.offsets.size()) entry.offsets[n_offsets_] = number;
      ++n_offsets_;
    } else if (entry.shape.size() == kMaxRank) {
      return refuse("{}: shape is longer than {}", at(), kMaxRank);
    } else {
      entry.shape.push_back(number);
    }
    return true;
  }

  bool null() override { return unexpected("null"); }
  bool boolean(bool /*value*/) override { return unexpected("true or false"); }
  bool number_integer(int64_t /*value*/) override { return unexpected("a negative number"); }
  bool number_float(double /*value*/, const std::string& text) override {
    return unexpected("the number " + printable(text));
  }
  bool binary(json::binary_t& /*value*/) override { return unexpected("binary data"); }

  bool parse_error(size_t position, const std::string& /*token*/,
                   const json::exception& error) override {
    return refuse("header is {}", json_problem(position, error.what()));
  }

 private:
  enum class State { kStart, kNames, kMetadata, kEntry, kNumbers };
  enum Key : size_t { kDtype, kShape, kOffsets };
  static constexpr std::array<std::string_view, 3> kKeys{"dtype", "shape", "data_offsets"};
  static unsigned bit(Key key) { return 1U << key; }

  template <typename... Args>
  bool refuse(fmt::format_string<Args...> format, Args&&... args) {
    if (problem.empty()) problem = fmt::format(format, std::forward<Args>(args)...);
    return false;
  }

  bool unexpected(std::string_view what) {
    return refuse("{}: {} where none may stand", at(), what);
  }

  std::string at() const {
    if (in_metadata_) return "__metadata__";
    return entries.empty() ? "header" : fmt::format("'{}'", printable(entries.back().name));
  }

  bool name(const std::string& name) {
    in_metadata_ = name == "__metadata__";
    if (!names_.insert(name).second) return refuse("'{}' stands twice", printable(name));
    if (in_metadata_) return true;
    if (entries.size() == kMaxTensors) return refuse("{}", too_many_tensors());
    entries.push_back({.name = name});
    return true;
  }

  bool metadata_key(const std::string& key) {
    if (!keys_.insert(key).second) return refuse("{}: key '{}' stands twice", at(), printable(key));
    if (keys_.size() > kMaxMetadata) return refuse("{}: more than {} keys", at(), kMaxMetadata);
    return true;
  }

  State state_ = State::kStart;
  bool in_metadata_ = false;
  Key key_ = kDtype;                      // the last one within an entry
  unsigned seen_ = 0;                     // the keys of this entry, as bits
  size_t n_offsets_ = 0;                  // of this entry
  std::unordered_set<std::string> keys_;  // those of __metadata__
  std::unordered_set<std::string> names_;
};

std::vector<Entry> parse_header(std::string_view header, const std::string& where) {
  if (header.empty() || header.front() != '{') {
    fail(ErrorKind::kFile, "{}: header does not start with '{{'", where);
  }
  // Each tensor opens a brace of its own: too many are told at once, without parsing them.
  if (static_cast<size_t>(std::count(header.begin(), header.end(), '{')) > kMaxTensors + 2) {
    fail(ErrorKind::kFile, "{}: {}", where, too_many_tensors());
  }
  HeaderSax sax;
  json::sax_parse(header.begin(), header.end(), &sax);
  if (!sax.problem.empty()) fail(ErrorKind::kFile, "{}: {}", where, sax.problem);
  return std::move(sax.entries);
}

// Entries in the order of their bytes must follow each other without a gap from 0 to data_size.
void check_layout(std::vector<Entry>& entries, uint64_t data_size, const std::string& where) {
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.offsets < b.offsets; });
  int64_t end = 0;
  for (const Entry& entry : entries) {
    const std::string name = printable(entry.name);
    const int64_t from = entry.offsets[0];
    const int64_t to = entry.offsets[1];
    if (from > to || static_cast<uint64_t>(to) > data_size) {
      fail(ErrorKind::kFile, "{}: '{}' takes bytes {} to {} of {} bytes of data", where, name, from,
           to, data_size);
    }
    if (from != end) {
      fail(ErrorKind::kFile, "{}: '{}' starts at byte {}, {} byte {} where the one before ends",
           where, name, from, from < end ? "an overlap: before" : "a hole: after", end);
    }
    const auto count = element_count(entry.shape);
    const uint64_t bits = static_cast<uint64_t>(count.value_or(0)) * entry.type->bits;
    if (!count || bits % 8 != 0 || bits / 8 != static_cast<uint64_t>(to - from)) {
      fail(ErrorKind::kFile, "{}: '{}' is {} of {} but has {} bytes", where, name, entry.type->name,
           shape_text(entry.shape), to - from);
    }
    end = to;
  }
  if (static_cast<uint64_t>(end) != data_size) {
    fail(ErrorKind::kFile, "{}: {} bytes of data, its tensors end at {}; a tail that is nobody's",
         where, data_size, end);
  }
}

}  // namespace

TensorFile parse_safetensors(std::span<const std::byte> bytes, const std::string& where) {
  ByteCursor cursor(bytes, where);
  if (bytes.size() < 8) {
    fail(ErrorKind::kFile, "{}: {} bytes, too short for a safetensors file", where, bytes.size());
  }
  const auto header_size = cursor.number<uint64_t>();
  if (header_size > kMaxHeader) {
    fail(ErrorKind::kFile, "{}: header of {} bytes, at most {} are read", where, header_size,
         kMaxHeader);
  }
  if (header_size > cursor.left()) {
    fail(ErrorKind::kFile, "{}: header of {} bytes in a file of {}; is it cut short?", where,
         header_size, bytes.size());
  }
  std::vector<Entry> entries = parse_header(cursor.text(header_size), where);
  check_layout(entries, cursor.left(), where);

  const std::byte* data = bytes.data() + cursor.position();
  TensorFile file;
  for (Entry& entry : entries) {
    if (entry.type->dtype) {
      file.tensors.push_back({.name = std::move(entry.name),
                              .data = data + entry.offsets[0],
                              .dtype = *entry.type->dtype,
                              .shape = std::move(entry.shape)});
    } else {
      file.skipped.emplace_back(std::move(entry.name),
                                fmt::format("is stored as {}", entry.type->name));
    }
  }
  return file;
}

}  // namespace quintet
