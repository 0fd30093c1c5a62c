#include "conformance/cell.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <thread>

namespace quintet::conformance {
namespace {

constexpr size_t kMostFindings = 12;  // of a cell; the first ones say what is wrong

std::string listed(const std::vector<std::string>& names, const std::vector<size_t>& bytes) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    text += fmt::format("{}{} on {}", i == 0 ? "" : ", ", bytes[i], names[i]);
  }
  return text;
}

// Of b from a, as a part of a's norm; infinite where one of them is not finite.
double relative_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double distance = 0;
  double norm = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    distance += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
    norm += std::pow(static_cast<double>(a[i]), 2);
  }
  if (distance == 0) return 0;
  const double relative = std::sqrt(distance / norm);
  return std::isfinite(relative) ? relative : INFINITY;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// The first value in which they differ.
std::string first_difference(const std::vector<float>& expected, const std::vector<float>& found) {
  for (size_t i = 0; i < expected.size(); ++i) {
    if (std::bit_cast<uint32_t>(expected[i]) != std::bit_cast<uint32_t>(found[i])) {
      return fmt::format("value {} is {:.9g} instead of {:.9g}", i, found[i], expected[i]);
    }
  }
  return "";
}

std::string ids_text(const std::vector<int32_t>& ids) {
  return fmt::format("[{}]", fmt::join(ids, ", "));
}

}  // namespace

bool Cell::one_map_fits() const {
  return n_encoder_layers() == 0 || n_decoder_layers() == 0 ||
         n_encoder_layers() == n_decoder_layers();
}

StackMaps Cell::whole(const std::string& device) const {
  return whole_on(device, n_encoder_layers(), n_decoder_layers());
}

StackMaps Cell::even() const { return even_layout(names_, n_encoder_layers(), n_decoder_layers()); }

std::vector<Layout> Cell::layouts() const {
  return layouts_over(names_, n_encoder_layers(), n_decoder_layers());
}

void Cell::need_two_devices() const {
  if (names_.size() < 2) skip(fmt::format("{} is the only device; a split needs two", first()));
}

void Cell::need_generation() const {
  if (!model_class_.generates) skip("the class does not generate");
}

std::unique_ptr<Subject> Cell::load(LoadOptions options) const {
  options.tokens_per_batch = 40;
  return model_class_.load(made_.folder.string(), options);
}

std::unique_ptr<Subject> Cell::load_on(const std::string& device, const std::string& dtype) const {
  LoadOptions options;
  options.device = device;
  options.dtype = dtype;
  return load(options);
}

std::unique_ptr<Subject> Cell::load_with(const DeviceMap& device_map) const {
  LoadOptions options;
  options.device_map = device_map;
  return load(options);
}

std::vector<size_t> Cell::bytes() const {
  std::vector<size_t> bytes;
  for (const std::string& name : names_) bytes.push_back(device_memory_in_use(name));
  return bytes;
}

std::vector<size_t> Cell::settled_bytes() const {
  std::vector<size_t> last;
  for (std::vector<size_t> now = bytes(); now != last; now = bytes()) {
    last = std::move(now);
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
  }
  return last;
}

void Cell::expect_bytes(const std::string& what, const std::vector<size_t>& expected) {
  using std::chrono::steady_clock;
  const auto patience = steady_clock::now() + std::chrono::seconds(1);
  std::vector<size_t> found = bytes();
  while (found != expected && steady_clock::now() < patience) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    found = bytes();
  }
  if (found == expected) return;
  expect(false, what + ": bytes in use", listed(names_, expected), listed(names_, found));
}

void Cell::expect(bool holds, const std::string& what, const std::string& expected,
                  const std::string& found) {
  if (holds) return;
  result_.outcome = Outcome::kFail;
  if (result_.findings.size() < kMostFindings) result_.findings.push_back({what, expected, found});
}

void Cell::equal_maps(const std::string& what, const StackMaps& expected, const StackMaps& found) {
  equal(what + ": device map", maps_text(expected), maps_text(found));
}

void Cell::expect_error(const std::string& what, ErrorKind kind,
                        const std::vector<std::string>& parts, const std::function<void()>& call) {
  std::string expected = fmt::format("an error of kind {}", error_kind_name(kind));
  for (const std::string& part : parts) {
    if (!part.empty()) expected += fmt::format(", '{}'", part);
  }
  try {
    call();
  } catch (const Error& error) {
    const std::string message = error.what();
    const bool told = std::ranges::all_of(
        parts, [&](const std::string& part) { return message.find(part) != std::string::npos; });
    expect(error.kind() == kind && told, what, expected,
           fmt::format("kind {}: {}", error_kind_name(error.kind()), message));
    return;
  }
  expect(false, what, expected, "no error");
}

void Cell::expect_sound(const std::string& what, const Rows& rows) {
  float least = INFINITY;
  float most = -INFINITY;
  bool finite = true;
  for (const auto& values : rows) {
    for (const float value : values) {
      finite = finite && std::isfinite(value);
      least = std::min(least, value);
      most = std::max(most, value);
    }
  }
  expect(finite, what, "finite numbers", "some that are not");
  expect(!finite || least < most, what, "different numbers",
         least == most ? fmt::format("all are {}", least) : "none");
}

void Cell::equal_rows(const std::string& what, const Rows& expected, const Rows& found,
                      Likeness likeness) {
  if (likeness == Likeness::kAsDevices && !set_.one_kind()) {
    return within(what, expected, found, set_.tolerance);
  }
  equal(what + ": sequences", expected.size(), found.size());
  for (size_t i = 0; i < std::min(expected.size(), found.size()); ++i) {
    const std::string where = fmt::format("{}: sequence {}", what, i);
    equal(where + ": values", expected[i].size(), found[i].size());
    if (expected[i].size() != found[i].size() || same_bits(expected[i], found[i])) continue;
    expect(false, where, "the same bits",
           fmt::format("{}; relative difference {:.2g}", first_difference(expected[i], found[i]),
                       relative_difference(expected[i], found[i])));
  }
}

void Cell::within(const std::string& what, const Rows& expected, const Rows& found,
                  double tolerance) {
  equal(what + ": sequences", expected.size(), found.size());
  for (size_t i = 0; i < std::min(expected.size(), found.size()); ++i) {
    const std::string where = fmt::format("{}: sequence {}", what, i);
    equal(where + ": values", expected[i].size(), found[i].size());
    if (expected[i].size() != found[i].size()) continue;
    const double relative = relative_difference(expected[i], found[i]);
    expect(relative <= tolerance, where, fmt::format("a relative difference <= {:.2g}", tolerance),
           fmt::format("{:.2g}; {}", relative, first_difference(expected[i], found[i])));
    result_.relative_difference = std::max(result_.relative_difference.value_or(0), relative);
  }
}

void Cell::equal_generated(const std::string& what, const Generated& expected,
                           const Generated& found, Likeness likeness) {
  const bool bits = likeness == Likeness::kBits || set_.one_kind();
  equal(what + ": sequences", expected.size(), found.size());
  for (size_t i = 0; i < std::min(expected.size(), found.size()); ++i) {
    equal(fmt::format("{}: sequence {}: returned", what, i), expected[i].size(), found[i].size());
    for (size_t j = 0; j < std::min(expected[i].size(), found[i].size()); ++j) {
      const std::string where = fmt::format("{}: sequence {}, returned {}", what, i, j);
      const GeneratedSequence& a = expected[i][j];
      const GeneratedSequence& b = found[i][j];
      equal(where, ids_text(a.ids), ids_text(b.ids));
      equal(where + ": has a score", a.score.has_value(), b.score.has_value());
      if (a.ids != b.ids || !a.score || !b.score) continue;
      const double difference = std::abs(*a.score - *b.score) / std::abs(*a.score);
      expect(bits ? *a.score == *b.score : difference <= set_.tolerance, where + ": score",
             fmt::format("{:.17g}", *a.score), fmt::format("{:.17g}", *b.score));
    }
  }
}

std::string_view error_kind_name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUsage:
      return "kUsage";
    case ErrorKind::kFile:
      return "kFile";
    case ErrorKind::kRecord:
      return "kRecord";
    case ErrorKind::kIo:
      return "kIo";
    case ErrorKind::kDevice:
      return "kDevice";
    case ErrorKind::kMemory:
      return "kMemory";
    case ErrorKind::kInterrupted:
      return "kInterrupted";
  }
  return "?";
}

}  // namespace quintet::conformance
