#include "engine/layout.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <utility>

#include "backends/measure.h"
#include "backends/registry.h"
#include "core/error.h"
#include "engine/record_encoder.h"
#include "engine/version.h"
#include "input/reader.h"
#include "placement/calibration.h"
#include "placement/memory_limits.h"

namespace quintet {
namespace {

constexpr size_t kSampledRecords = 5000;
constexpr int32_t kUsualLength = 300;  // a protein's median
constexpr int64_t kTokensPerBatch = 512;

int64_t status_bytes(const std::string& key) {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    if (word != key) continue;
    int64_t kib = 0;
    status >> kib;
    return kib * 1024;
  }
  return 0;
}

std::vector<std::string> chosen_devices(const Options& options, const DeviceMapOption& map) {
  if (!options.devices.empty()) return parse_device_list(options.devices);
  std::vector<std::string> names;
  for (const auto& [name, blocks] : map.encoder) names.push_back(canonical_device_name(name));
  if (names.empty()) names.push_back(canonical_device_name("cpu:0"));
  check_device_list(names);
  return names;
}

// A given map in canonical names; each of its devices must be among --devices where both are given.
DeviceMap canonical_map(const DeviceMap& given, const std::vector<std::string>& devices) {
  DeviceMap map;
  for (const auto& [name, blocks] : given) {
    std::string canonical = canonical_device_name(name);
    if (std::find(devices.begin(), devices.end(), canonical) == devices.end()) {
      std::string listed;
      for (const auto& device : devices) listed += (listed.empty() ? "" : ", ") + device;
      fail(ErrorKind::kUsage, "--device-map names {}, --devices has {}", canonical, listed);
    }
    map.emplace_back(std::move(canonical), blocks);
  }
  return map;
}

DeviceSpec spec_of(const std::string& name, const Options& options, const MemoryLimits& limits,
                   DType dtype) {
  const DeviceInfo info = find_device(name);
  const OpenOptions open{.threads = options.threads};
  const CalibrationKey key{
      .hardware = info.hardware, .threads = options.threads, .version = kVersion};
  const DeviceSpeed speed =
      calibrate(key, [&] { return measure_device(*open_device(name, open)); });
  auto bytes = static_cast<int64_t>(info.free_bytes);
  if (limits.every) bytes = std::min(bytes, *limits.every);
  for (const auto& [limited, limit] : limits.per_device) {
    if (canonical_device_name(limited) == name) {
      bytes = std::min(static_cast<int64_t>(info.free_bytes), limit);
    }
  }
  DeviceSpec spec = device_spec(name, speed, dtype, bytes);
  spec.memory_pool = info.memory_pool;
  spec.pool_bytes = static_cast<int64_t>(info.free_bytes);
  return spec;
}

// Every device that --max-memory names must be one of those in use.
void check_limits(const MemoryLimits& limits, const std::vector<std::string>& devices) {
  for (const auto& [name, limit] : limits.per_device) {
    if (std::find(devices.begin(), devices.end(), canonical_device_name(name)) == devices.end()) {
      fail(ErrorKind::kUsage, "--max-memory {}: {} is not among the devices in use", name, name);
    }
  }
}

// The longest record whose activations fit beside the weights, by bisection over the plan.
int64_t longest_record(const StackCost& cost, const Layout& layout) {
  LengthProfile profile = layout.profile;
  const auto fits = [&](int64_t n_tokens) {
    profile.lengths = {static_cast<int32_t>(n_tokens)};
    return evaluate_map(cost, layout.map, layout.devices, profile, layout.context).fits;
  };
  int64_t low = 0;
  int64_t high = int64_t{1} << 26;
  while (high - low > std::max<int64_t>(1, low / 256)) {
    const int64_t middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

}  // namespace

int64_t resident_bytes() { return status_bytes("VmRSS:"); }
int64_t peak_resident_bytes() { return status_bytes("VmHWM:"); }

ExpectedRecords expected_records(const Options& options, const EncoderModel& model) {
  ExpectedRecords expected;
  if (!options.lengths.empty()) {
    expected.lengths = options.lengths;
    return expected;
  }
  if (!options.input.empty() && std::filesystem::is_regular_file(options.input)) {
    const auto reader = open_reader(options.input, options.input_format);
    RecordEncoder encoder(options, reader->format(), model.vocab_size());
    Record record;
    size_t n_read = 0;
    bool more = true;
    while (n_read < kSampledRecords && (more = reader->next(record))) {
      ++n_read;
      if (!record.rejected.empty()) continue;
      const EncodedRecord encoded = encoder.encode(record);
      const auto n_tokens = static_cast<int32_t>(encoded.sequence.tokens.size());
      if (encoded.rejected.empty() && n_tokens > 0) expected.lengths.push_back(n_tokens);
    }
    const double share = reader->bytes_total() == 0
                             ? 0.0
                             : static_cast<double>(reader->bytes_read()) /
                                   static_cast<double>(reader->bytes_total());
    const bool whole = !more || share <= 0;
    expected.n_records = static_cast<int64_t>(whole ? static_cast<double>(n_read)
                                                    : static_cast<double>(n_read) / share);
  }
  if (expected.lengths.empty()) expected.lengths = {kUsualLength};
  return expected;
}

Layout make_layout(const EncoderFolder& folder, const Options& options,
                   const ExpectedRecords& expected) {
  const EncoderModel& model = *folder.model;
  const DeviceMapOption map_option = parse_device_map(options.device_map);
  const std::vector<std::string> devices = chosen_devices(options, map_option);
  const MemoryLimits limits =
      options.max_memory.empty() ? MemoryLimits{} : parse_memory_limits(options.max_memory);
  check_limits(limits, devices);

  Layout layout;
  layout.dtype = options.dtype.value_or(model.stored_dtype(*folder.checkpoint));
  layout.profile = {.lengths = expected.lengths,
                    .n_records = expected.n_records,
                    .tokens_per_batch =
                        options.tokens_per_batch > 0 ? options.tokens_per_batch : kTokensPerBatch};
  layout.context.dtype = std::string(name_of(layout.dtype));
  for (const DType other : {DType::kFloat32, DType::kBFloat16}) {
    if (other != layout.dtype) {
      layout.context.other_dtypes.emplace_back(name_of(other), model.cost(other));
    }
  }
  for (const auto& name : devices) {
    layout.devices.push_back(spec_of(name, options, limits, layout.dtype));
  }
  const StackCost cost = model.cost(layout.dtype);
  // Results on their way to the output stay on the host: those of the pipeline and one being
  // written.
  const int64_t host_bytes = resident_bytes() + 4 * layout.profile.tokens_per_batch *
                                                    model.d_model() *
                                                    static_cast<int64_t>(sizeof(float));
  layout.devices.front().fixed_bytes = host_bytes;

  switch (map_option.rule) {
    case MapRule::kAuto:
      layout.plan = plan_stages(cost, layout.devices, layout.profile, layout.context);
      layout.map = device_map_of(layout.plan);
      break;
    case MapRule::kEven:
      layout.map = get_device_map(model.n_layers(), devices);
      break;
    case MapRule::kGiven:
      layout.map = canonical_map(map_option.encoder, devices);
      break;
  }
  if (map_option.rule != MapRule::kAuto) {
    assert_device_map(layout.map, model.n_layers(), "encoder");
    layout.plan = evaluate_map(cost, layout.map, layout.devices, layout.profile, layout.context);
  }
  if (layout.plan.fits) layout.longest_that_fits = longest_record(cost, layout);
  return layout;
}

}  // namespace quintet
