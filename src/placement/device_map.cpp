// Device maps: the even split, the checks, and the forms in which a user writes one down.
#include "quintet/device_map.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <numeric>
#include <set>
#include <unordered_set>

#include "core/error.h"
#include "core/json.h"
#include "placement/block_ranges.h"

namespace quintet {
namespace {

using nlohmann::json;

// A map is small; a file beyond this is something else.
constexpr JsonLimits kMapLimits = {.max_bytes = size_t{16} << 20, .max_depth = 8};

// Where a message is about: "encoder device map", "device map".
std::string map_name(const std::string& stack) {
  return stack.empty() ? "device map" : stack + " device map";
}

struct BlockFaults {
  std::vector<int64_t> duplicate, missing, extra;

  bool any() const { return !duplicate.empty() || !missing.empty() || !extra.empty(); }
};

BlockFaults find_faults(const DeviceMap& device_map, int64_t n_layers) {
  std::set<int64_t> seen;
  std::set<int64_t> duplicate;
  std::set<int64_t> extra;
  for (const auto& [device, blocks] : device_map) {
    for (const int64_t block : blocks) {
      if (!seen.insert(block).second) duplicate.insert(block);
      if (block < 0 || block >= n_layers) extra.insert(block);
    }
  }
  BlockFaults faults;
  for (int64_t block = 0; block < n_layers; ++block) {
    if (!seen.contains(block)) faults.missing.push_back(block);
  }
  faults.duplicate.assign(duplicate.begin(), duplicate.end());
  faults.extra.assign(extra.begin(), extra.end());
  return faults;
}

// Devices with their blocks as such: no device twice or without blocks, each list one rising run.
// Returns what is wrong, or nothing.
std::string find_list_problem(const DeviceMap& device_map) {
  if (device_map.empty()) return "is empty; name at least one device with its blocks";
  std::unordered_set<std::string> names;
  for (const auto& [device, blocks] : device_map) {
    if (!names.insert(device).second) return fmt::format("names device '{}' twice", device);
    if (blocks.empty()) {
      return fmt::format("lists device '{}' without blocks; leave it out or give it some", device);
    }
  }
  return {};
}

std::string find_run_problem(const DeviceMap& device_map) {
  for (const auto& [device, blocks] : device_map) {
    for (size_t i = 1; i < blocks.size(); ++i) {
      if (blocks[i] == blocks[i - 1] + 1) continue;
      const int64_t lowest = *std::min_element(blocks.begin(), blocks.end());
      const auto n = static_cast<int64_t>(blocks.size());
      return fmt::format(
          "has block {} after block {} on '{}'; a device holds one run of blocks in rising order, "
          "such as {}",
          blocks[i], blocks[i - 1], device, block_range(lowest, lowest + n));
    }
  }
  return {};
}

// One {"cpu:0": [0, 1], ...} from JSON.
class MapReader {
 public:
  // `where` begins each message; `kind` is the file's or the option's.
  MapReader(std::string where, ErrorKind kind) : where_(std::move(where)), kind_(kind) {}

  DeviceMap read(const json& value, const std::string& stack) const {
    if (!value.is_object()) {
      fail(kind_, "{}: {} is of type {}, expected an object such as {{\"cpu:0\": [0, 1]}}", where_,
           map_name(stack), value.type_name());
    }
    DeviceMap device_map;
    for (const auto& [device, blocks] : value.items()) {
      device_map.emplace_back(device, read_blocks(device, blocks));
    }
    if (const std::string problem = find_list_problem(device_map); !problem.empty()) {
      fail(kind_, "{}: {} {}", where_, map_name(stack), problem);
    }
    return order_device_map(std::move(device_map));
  }

 private:
  std::vector<int64_t> read_blocks(const std::string& device, const json& blocks) const {
    if (device.find_first_not_of(' ') == std::string::npos) {
      fail(kind_, "{}: a device without a name; name it, such as \"cpu:0\" or \"cpu[0-3]\"",
           where_);
    }
    if (device.find_first_not_of("0123456789 ") == std::string::npos) {
      fail(kind_,
           "{}: '{}' is not a device; devices have names here, such as \"cpu:{}\" or "
           "\"cuda:{}\"",
           where_, device, device, device);
    }
    if (!blocks.is_array()) {
      fail(kind_,
           "{}: '{}' has a value of type {}, expected a list of block numbers such as "
           "[0, 1, 2]",
           where_, device, blocks.type_name());
    }
    std::vector<int64_t> numbers;
    for (const json& block : blocks) {
      const bool fits = block.is_number_integer() &&
                        (!block.is_number_unsigned() ||
                         block.get<uint64_t>() <= uint64_t{std::numeric_limits<int32_t>::max()});
      if (!fits || block.get<int64_t>() < 0) {
        fail(kind_, "{}: '{}' lists {}, expected a block number counted from 0", where_, device,
             block.dump(-1, ' ', false, json::error_handler_t::replace).substr(0, 40));
      }
      numbers.push_back(block.get<int64_t>());
    }
    return numbers;
  }

  std::string where_;
  ErrorKind kind_;
};

bool names_stacks(const json& value) {
  return value.is_object() && (value.contains("encoder") || value.contains("decoder"));
}

DeviceMapOption read_option(const json& value, const std::string& where, ErrorKind kind) {
  const MapReader reader(where, kind);
  DeviceMapOption option;
  option.rule = MapRule::kGiven;
  option.per_stack = names_stacks(value);
  if (!option.per_stack) {
    option.encoder = reader.read(value, "");
    option.decoder = option.encoder;
    return option;
  }
  for (const auto& [stack, device_map] : value.items()) {
    if (stack == "encoder") {
      option.encoder = reader.read(device_map, stack);
    } else if (stack == "decoder") {
      option.decoder = reader.read(device_map, stack);
    } else {
      fail(kind, "{}: '{}' stands beside a stack; the stacks are 'encoder' and 'decoder'", where,
           stack);
    }
  }
  return option;
}

// What the option has for one stack of a model.
DeviceMap stack_map(const DeviceMapOption& option, const DeviceMap& given, int64_t n_layers,
                    const std::vector<std::string>& devices, const std::string& stack) {
  const bool named = option.per_stack && !given.empty();
  if (n_layers == 0) {
    if (named) {
      fail(ErrorKind::kUsage,
           "--device-map has a map for the {}, this model has none; leave it out", stack);
    }
    return {};
  }
  if (option.rule != MapRule::kGiven) return get_device_map(n_layers, devices);
  if (given.empty()) {
    fail(ErrorKind::kUsage,
         "--device-map has no map for the {}, whose blocks are {}; add \"{}\": {}", stack,
         block_range(0, n_layers), stack, "{...}");
  }
  assert_device_map(given, n_layers, stack);
  return given;
}

// {0: [0, 1]} as Python prints the maps of old: not JSON, so it is told apart before parsing.
bool has_bare_number_keys(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t\r\n{");
  return first != std::string::npos && text[first] >= '0' && text[first] <= '9';
}

}  // namespace

std::string block_range(int64_t first, int64_t one_past_last) {
  if (first >= one_past_last) return "none";
  if (first + 1 == one_past_last) return fmt::format("{}", first);
  return fmt::format("{}-{}", first, one_past_last - 1);
}

std::string block_ranges(const std::vector<int64_t>& rising) {
  std::string text;
  for (size_t begin = 0; begin < rising.size();) {
    size_t end = begin + 1;
    while (end < rising.size() && rising[end] == rising[end - 1] + 1) ++end;
    text += text.empty() ? "" : ", ";
    text += block_range(rising[begin], rising[end - 1] + 1);
    begin = end;
  }
  return text;
}

std::vector<int64_t> block_list(int64_t first, int64_t one_past_last) {
  std::vector<int64_t> blocks(static_cast<size_t>(std::max<int64_t>(0, one_past_last - first)));
  std::iota(blocks.begin(), blocks.end(), first);
  return blocks;
}

DeviceMap get_device_map(int64_t n_layers, const std::vector<std::string>& devices) {
  if (devices.empty()) {
    fail(ErrorKind::kUsage,
         "no devices to lay {} blocks out over; name at least one, such as cpu:0", n_layers);
  }
  if (n_layers < 1) fail(ErrorKind::kUsage, "a stack of {} blocks cannot be laid out", n_layers);
  const auto k = static_cast<int64_t>(devices.size());
  const int64_t per_device = (n_layers - 1) / k + 1;
  DeviceMap device_map;
  for (int64_t first = 0; first < n_layers; first += per_device) {
    device_map.emplace_back(devices[static_cast<size_t>(first / per_device)],
                            block_list(first, first + std::min(per_device, n_layers - first)));
  }
  return device_map;
}

void assert_device_map(const DeviceMap& device_map, int64_t n_layers, const std::string& stack) {
  const auto refuse = [&](const std::string& problem) {
    if (!problem.empty()) fail(ErrorKind::kUsage, "{} {}", map_name(stack), problem);
  };
  refuse(find_list_problem(device_map));
  const BlockFaults faults = find_faults(device_map, n_layers);
  if (faults.any()) {
    std::string list;
    const auto add = [&](const char* what, const std::vector<int64_t>& blocks) {
      if (blocks.empty()) return;
      list += fmt::format("{}{} blocks: {}", list.empty() ? "" : "; ", what, block_ranges(blocks));
    };
    add("duplicate", faults.duplicate);
    add("missing", faults.missing);
    add("extra", faults.extra);
    fail(ErrorKind::kUsage, "{} does not hold each of blocks {} once: {}", map_name(stack),
         block_range(0, n_layers), list);
  }
  refuse(find_run_problem(device_map));
}

DeviceMap order_device_map(DeviceMap device_map) {
  std::stable_sort(device_map.begin(), device_map.end(), [](const auto& a, const auto& b) {
    if (a.second.empty() || b.second.empty()) return !a.second.empty() && b.second.empty();
    return a.second.front() < b.second.front();
  });
  return device_map;
}

DeviceMapOption parse_device_map(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) {
    fail(ErrorKind::kUsage,
         "--device-map is empty; use auto, even, a JSON file, or a map such as "
         "{{\"cpu[0]\": [0, 1], \"cpu[1]\": [2, 3]}}");
  }
  if (text == "auto") return {};
  if (text == "even") return {.rule = MapRule::kEven, .encoder = {}, .decoder = {}};
  if (text[begin] == '{' || text[begin] == '[') {
    if (has_bare_number_keys(text)) {
      fail(ErrorKind::kUsage,
           "--device-map: the keys are numbers; devices have names here, in double quotes: "
           "{{\"cpu:0\": [0, 1], \"cpu:1\": [2, 3]}}");
    }
    try {
      return read_option(parse_json(text, "--device-map", kMapLimits), "--device-map",
                         ErrorKind::kUsage);
    } catch (const Error& error) {
      throw Error(ErrorKind::kUsage, error.what());
    }
  }
  if (!std::filesystem::exists(text)) {
    fail(ErrorKind::kUsage,
         "--device-map {}: no such file; use auto, even, a JSON file, or a map such as "
         "{{\"cpu[0]\": [0, 1], \"cpu[1]\": [2, 3]}}",
         text);
  }
  return read_option(parse_json_file(text, kMapLimits), text, ErrorKind::kFile);
}

StackMaps stack_maps(const DeviceMapOption& option, int64_t n_encoder_layers,
                     int64_t n_decoder_layers, const std::vector<std::string>& devices) {
  StackMaps maps;
  try {
    maps.encoder = stack_map(option, option.encoder, n_encoder_layers, devices, "encoder");
    maps.decoder = stack_map(option, option.decoder, n_decoder_layers, devices, "decoder");
  } catch (const Error& error) {
    const bool for_both = option.rule == MapRule::kGiven && !option.per_stack;
    if (!for_both || n_encoder_layers == n_decoder_layers || n_encoder_layers == 0 ||
        n_decoder_layers == 0) {
      throw;
    }
    fail(error.kind(),
         "{} (a map that names no stack stands for both; this model has {} encoder "
         "and {} decoder blocks: write {{\"encoder\": {}, \"decoder\": {}}})",
         error.what(), n_encoder_layers, n_decoder_layers, "{...}", "{...}");
  }
  return maps;
}

std::string device_map_text(const DeviceMap& device_map) {
  nlohmann::ordered_json value = nlohmann::ordered_json::object();
  for (const auto& [device, blocks] : device_map) value[device] = blocks;
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace quintet
