#include "engine/layout.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <utility>

#include "backends/registry.h"
#include "core/error.h"
#include "engine/device_choice.h"
#include "engine/named_files.h"
#include "engine/record_encoder.h"
#include "input/reader.h"
#include "output/paths.h"
#include "output/writer.h"

namespace quintet {
namespace {

constexpr size_t kSampledRecords = 5000;
constexpr int32_t kUsualLength = 300;  // a protein's median
constexpr int64_t kTokensPerBatch = 512;
constexpr int64_t kLongestRecord = int64_t{1} << 26;  // tokens; no memory holds more

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

double mean_length(const std::vector<int32_t>& lengths) {
  const double all = std::accumulate(lengths.begin(), lengths.end(), 0.0);
  return all / static_cast<double>(lengths.size());
}

// What the run will hold of main memory beside the model; `longest` is filled in per question.
HostLoad host_load(const Options& options, const EncoderModel& model, const Layout& layout,
                   int64_t n_threads) {
  const bool pooled = options.pool.has_value();
  auto rows = static_cast<double>(layout.profile.tokens_per_batch);
  if (pooled) rows = std::ceil(rows / mean_length(layout.profile.lengths));
  const OutputFormat format = options.output_format    ? *options.output_format
                              : options.output.empty() ? OutputFormat::kHdf5
                                                       : output_format_of(options.output);
  return {.d_model = model.d_model(),
          .batch_rows = static_cast<int64_t>(rows),
          .longest_rows = pooled ? 1 : 0,
          .n_records = layout.profile.n_records,
          .bytes_per_number =
              static_cast<int64_t>(size_of(options.output_dtype.value_or(DType::kFloat32))),
          .hdf5 = format == OutputFormat::kHdf5,
          .n_stages = static_cast<int64_t>(layout.devices.size()),
          .n_threads = n_threads};
}

// Of the process, where the longest record has so many tokens.
int64_t program_bytes(const Layout& layout, int64_t longest) {
  HostLoad load = layout.host;
  load.longest = longest;
  if (load.longest_rows == 0) load.longest_rows = longest;
  return layout.resident_bytes + host_bytes(load);
}

// Micro-batches are no larger than all records together.
int64_t micro_batch_tokens(const Options& options, const ExpectedRecords& expected) {
  const int64_t most = options.tokens_per_batch > 0 ? options.tokens_per_batch : kTokensPerBatch;
  if (expected.n_records == 0) return most;
  const double all = mean_length(expected.lengths) * static_cast<double>(expected.n_records);
  return std::clamp<int64_t>(std::llround(all), 1, most);
}

// The plan of the same map for records of one length.
Plan plan_for(const StackCost& cost, const Layout& layout, int64_t n_tokens) {
  LengthProfile profile = layout.profile;
  profile.lengths = {static_cast<int32_t>(std::min(n_tokens, kLongestRecord))};
  std::vector<DeviceSpec> devices = layout.devices;
  devices.front().fixed_bytes = program_bytes(layout, n_tokens);
  return evaluate_map(cost, layout.map, devices, profile, layout.context);
}

// The longest record whose activations fit beside the weights, by bisection over the plan.
int64_t longest_record(const StackCost& cost, const Layout& layout) {
  int64_t low = 0;
  int64_t high = kLongestRecord;
  while (high - low > std::max<int64_t>(1, low / 256)) {
    const int64_t middle = low + (high - low) / 2;
    (plan_for(cost, layout, middle).fits ? low : high) = middle;
  }
  return low;
}

}  // namespace

int64_t resident_bytes() { return status_bytes("VmRSS:"); }
int64_t peak_resident_bytes() { return status_bytes("VmHWM:"); }

ExpectedRecords expected_records(const Options& options, const EncoderModel& model, bool consume) {
  if (!options.lengths.empty() && !options.input.empty()) {
    fail(ErrorKind::kUsage,
         "--lengths and --input exclude each other: lengths come from one place");
  }
  ExpectedRecords expected;
  expected.lengths = options.lengths;
  if (!options.input.empty() && (consume || std::filesystem::is_regular_file(options.input))) {
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

std::string why_too_long(const EncoderModel& model, const Layout& layout, int64_t n_tokens) {
  if (n_tokens <= layout.longest_that_fits) return "";
  // Within the bisection's step both may hold: then only the limit can be named.
  const Plan plan = plan_for(model.cost(layout.dtype), layout, n_tokens);
  return fmt::format(
      "{} tokens do not fit into the memory of this layout, at most {} do{}; a wider "
      "--max-memory, more devices or --dtype bfloat16 make room",
      n_tokens, layout.longest_that_fits, plan.fits ? "" : " (" + plan.problem + ")");
}

void check_plan_files(const Options& options) {
  check_named_files(options);
  if (!options.svg.empty()) check_writable(options.svg, "--svg");
  check_no_clash(
      {{"--svg", options.svg}, {"--input", options.input, true}, {"--model", options.model, true}});
}

Layout make_layout(const EncoderFolder& folder, const Options& options,
                   const ExpectedRecords& expected) {
  const EncoderModel& model = *folder.model;
  const DeviceMapOption map_option = parse_device_map(options.device_map);

  Layout layout;
  layout.dtype = options.dtype.value_or(model.stored_dtype(*folder.checkpoint));
  layout.profile = {.lengths = expected.lengths,
                    .n_records = expected.n_records,
                    .tokens_per_batch = micro_batch_tokens(options, expected)};
  layout.context.dtype = std::string(name_of(layout.dtype));
  for (const DType other : {DType::kFloat32, DType::kBFloat16}) {
    if (other != layout.dtype) {
      layout.context.other_dtypes.emplace_back(name_of(other), model.cost(other));
    }
  }
  const DeviceChoice devices = choose_devices(options, map_option, layout.dtype);
  layout.devices = devices.specs;
  const StackCost cost = model.cost(layout.dtype);
  layout.host = host_load(options, model, layout, devices.n_threads);
  layout.resident_bytes = resident_bytes();
  layout.devices.front().fixed_bytes =
      program_bytes(layout, *std::ranges::max_element(layout.profile.lengths));

  switch (map_option.rule) {
    case MapRule::kAuto:
      layout.plan = plan_stages(cost, layout.devices, layout.profile, layout.context);
      layout.map = device_map_of(layout.plan);
      break;
    case MapRule::kEven:
      layout.map = get_device_map(model.n_layers(), devices.names);
      break;
    case MapRule::kGiven:
      layout.map = canonical_map(map_option.encoder, devices.names);
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
