#include "backends/opencl/platforms.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "backends/host_memory.h"
#include "backends/opencl/ledger.h"
#include "backends/opencl/opencl_error.h"
#include "core/error.h"
#include "core/human.h"

namespace quintet::opencl {
namespace {

constexpr cl_uint kIntel = 0x8086;  // PCI vendor id
constexpr int kMostParts = 4096;

// A name taken apart: "opencl:0/2[1]".
struct DeviceName {
  bool xpu = false;
  int index = 0;
  int parts = 0;  // 0: no "/K"
  int part = -1;  // -1: no "[i]"
};

// The number at the front of `text`, which is cut off; -1 where there is none.
int cut_number(std::string_view& text) {
  int value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value < 0) return -1;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return value;
}

bool cut(std::string_view& text, std::string_view front) {
  if (!text.starts_with(front)) return false;
  text.remove_prefix(front.size());
  return true;
}

bool parse(std::string_view text, DeviceName& name) {
  name.xpu = text.starts_with("xpu");
  if (!cut(text, name.xpu ? "xpu" : "opencl")) return false;
  if (text.empty()) return true;
  if (!cut(text, ":") || (name.index = cut_number(text)) < 0) return false;
  if (text.empty()) return true;
  if (!cut(text, "/") || (name.parts = cut_number(text)) < 1) return false;
  if (text.empty()) return true;
  return cut(text, "[") && (name.part = cut_number(text)) >= 0 && text == "]";
}

// Drivers pad names with spaces and zeros.
std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\0')) text.pop_back();
  return text.substr(std::min(text.find_first_not_of(' '), text.size()));
}

bool can_run(const cl::Device& device) {
  if (device.getInfo<CL_DEVICE_AVAILABLE>() == CL_FALSE) return false;
  if (device.getInfo<CL_DEVICE_COMPILER_AVAILABLE>() == CL_FALSE) return false;
  const std::string version = device.getInfo<CL_DEVICE_VERSION>();  // "OpenCL 1.2 ..."
  return version.size() >= 10 && version.substr(7, 3) >= "1.2";
}

bool is_intel_gpu(const cl::Device& device) {
  return (device.getInfo<CL_DEVICE_TYPE>() & CL_DEVICE_TYPE_GPU) != 0 &&
         device.getInfo<CL_DEVICE_VENDOR_ID>() == kIntel;
}

DeviceInfo describe(const cl::Device& device, int index) {
  const cl::Platform platform(device.getInfo<CL_DEVICE_PLATFORM>());
  const std::string platform_name = trimmed(platform.getInfo<CL_PLATFORM_NAME>());
  const std::string name = trimmed(device.getInfo<CL_DEVICE_NAME>());
  const std::string driver = trimmed(device.getInfo<CL_DRIVER_VERSION>());
  DeviceInfo info;
  info.name = fmt::format("opencl:{}", index);
  info.n_cores = static_cast<int>(device.getInfo<CL_DEVICE_MAX_COMPUTE_UNITS>());
  info.memory_pool = uses_host_memory(device) ? "host" : info.name;
  const MemoryInfo memory = free_memory(device, info.memory_pool);
  info.total_bytes = memory.total;
  info.free_bytes = memory.free;
  info.description = fmt::format("{}, {}, driver {}, {} units, {}", platform_name, name, driver,
                                 info.n_cores, human_bytes(info.total_bytes));
  info.hardware =
      fmt::format("{} ({}) | {} | {} | {} units", platform_name,
                  trimmed(platform.getInfo<CL_PLATFORM_VERSION>()), name, driver, info.n_cores);
  return info;
}

// The devices of one platform that can be used; a platform that fails has none.
std::vector<cl::Device> devices_of(const cl::Platform& platform) {
  std::vector<cl::Device> usable;
  try {
    std::vector<cl::Device> devices;
    platform.getDevices(CL_DEVICE_TYPE_ALL, &devices);
    for (const cl::Device& device : devices) {
      try {
        if (can_run(device)) usable.push_back(device);
      } catch (const cl::Error&) {
        // passed over: it cannot even be asked
      }
    }
  } catch (const cl::Error&) {
    return {};
  }
  return usable;
}

std::string names_of(const std::vector<FoundDevice>& devices) {
  std::string text;
  for (const FoundDevice& found : devices) {
    text +=
        fmt::format("{}{} ({})", text.empty() ? "" : ", ", found.info.name, found.info.description);
  }
  return text.empty() ? "none (PoCL has none where it cannot write its cache: POCL_CACHE_DIR names "
                        "another folder)"
                      : text;
}

// The units of each part: as equal as can be, larger ones first.
std::vector<cl_uint> part_units(int units, int parts) {
  std::vector<cl_uint> counts(static_cast<size_t>(parts), static_cast<cl_uint>(units / parts));
  for (int i = 0; i < units % parts; ++i) ++counts[static_cast<size_t>(i)];
  return counts;
}

bool can_partition(const cl::Device& device, cl_device_partition_property way) {
  const auto ways = device.getInfo<CL_DEVICE_PARTITION_PROPERTIES>();
  return std::find(ways.begin(), ways.end(), way) != ways.end();
}

std::vector<cl::Device> partition(const FoundDevice& whole, int parts) {
  const cl::Device& device = whole.device;
  const int units = whole.info.n_cores;
  const auto most = static_cast<int>(
      std::min<cl_uint>(device.getInfo<CL_DEVICE_PARTITION_MAX_SUB_DEVICES>(), kMostParts));
  const bool equal = units % parts == 0 && can_partition(device, CL_DEVICE_PARTITION_EQUALLY);
  if (parts > units || parts > most ||
      (!equal && !can_partition(device, CL_DEVICE_PARTITION_BY_COUNTS))) {
    fail(ErrorKind::kDevice, "{} ({}) cannot be divided into {} parts: {}", whole.info.name,
         whole.info.description, parts,
         most < 2 ? "its driver does not divide it"
                  : fmt::format("it has {} compute units, its driver divides it into at most {}",
                                units, most));
  }
  std::vector<cl_device_partition_property> properties;
  if (equal) {
    properties = {CL_DEVICE_PARTITION_EQUALLY, units / parts, 0};
  } else {
    properties = {CL_DEVICE_PARTITION_BY_COUNTS};
    for (const cl_uint count : part_units(units, parts)) properties.push_back(count);
    properties.insert(properties.end(), {CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0});
  }
  std::vector<cl::Device> made;
  guarded(whole.info.name, [&] { cl::Device(device).createSubDevices(properties.data(), &made); });
  if (made.size() != static_cast<size_t>(parts)) {
    fail(ErrorKind::kDevice, "{}: its driver made {} parts where {} were asked for",
         whole.info.name, made.size(), parts);
  }
  return made;
}

FoundDevice part_of(const FoundDevice& whole, const cl::Device& device, int part, int parts) {
  FoundDevice found = whole;
  found.device = device;
  found.part = part;
  found.parts = parts;
  found.info.name = fmt::format("{}/{}[{}]", whole.info.name, parts, part);
  found.info.n_cores =
      static_cast<int>(part_units(whole.info.n_cores, parts)[static_cast<size_t>(part)]);
  found.info.description = fmt::format("{} of {} units of {}", found.info.n_cores,
                                       whole.info.n_cores, whole.info.description);
  found.info.hardware = fmt::format("{} of {}", found.info.n_cores, whole.info.hardware);
  return found;
}

// The units [begin, end) of the whole device that it computes on.
std::pair<cl_uint, cl_uint> unit_range(const FoundDevice& found) {
  if (found.part < 0) return {0, static_cast<cl_uint>(found.info.n_cores)};
  const auto units = static_cast<int>(cl::Device(found.device.getInfo<CL_DEVICE_PARENT_DEVICE>())
                                          .getInfo<CL_DEVICE_MAX_COMPUTE_UNITS>());
  const std::vector<cl_uint> counts = part_units(units, found.parts);
  cl_uint begin = 0;
  for (int i = 0; i < found.part; ++i) begin += counts[static_cast<size_t>(i)];
  return {begin, begin + counts[static_cast<size_t>(found.part)]};
}

}  // namespace

bool uses_host_memory(const cl::Device& device) {
  if ((device.getInfo<CL_DEVICE_TYPE>() & CL_DEVICE_TYPE_CPU) != 0) return true;
  try {
    return device.getInfo<CL_DEVICE_HOST_UNIFIED_MEMORY>() != CL_FALSE;
  } catch (const cl::Error&) {
    return false;  // a driver of a later version that has left the question out
  }
}

MemoryInfo free_memory(const cl::Device& device, const std::string& pool) {
  MemoryInfo memory;
  memory.total = device.getInfo<CL_DEVICE_GLOBAL_MEM_SIZE>();
  const size_t taken = Ledger::instance().taken(pool);
  memory.free = memory.total - std::min(memory.total, taken);
  if (uses_host_memory(device)) {
    const HostMemory host = host_memory();
    memory.total = std::min(memory.total, host.total);
    memory.free = std::min(memory.free, host.free);
  }
  return memory;
}

std::vector<FoundDevice> all_devices() {
  std::vector<cl::Platform> platforms;
  try {
    cl::Platform::get(&platforms);
  } catch (const cl::Error&) {
    platforms.clear();  // the loader's way of saying that it found no driver
  }
  if (platforms.empty()) {
    fail(ErrorKind::kDevice,
         "no OpenCL driver is installed (none is registered in /etc/OpenCL/vendors): install the "
         "one of your device, or pocl-opencl-icd for the processor");
  }
  std::vector<FoundDevice> found;
  for (const cl::Platform& platform : platforms) {
    for (const cl::Device& device : devices_of(platform)) {
      const auto index = static_cast<int>(found.size());
      try {
        found.push_back({.info = describe(device, index), .device = device, .index = index});
      } catch (const cl::Error&) {
        // passed over: a driver that cannot describe its device
      }
    }
  }
  return found;
}

std::vector<FoundDevice> find_devices(const std::string& name) {
  DeviceName wanted;
  if (!parse(name, wanted)) {
    fail(ErrorKind::kDevice,
         "\"{}\" names no device: expected opencl:N or xpu:N, with /K for its K parts or /K[i] "
         "for one of them",
         name);
  }
  const std::vector<FoundDevice> all = all_devices();
  std::vector<FoundDevice> kind;
  for (const FoundDevice& found : all) {
    if (!wanted.xpu || is_intel_gpu(found.device)) kind.push_back(found);
  }
  if (static_cast<size_t>(wanted.index) >= kind.size()) {
    fail(ErrorKind::kDevice, "no device {}{}: there are: {}", name,
         wanted.xpu ? " (an Intel GPU)" : "", names_of(wanted.xpu && kind.empty() ? all : kind));
  }
  const FoundDevice& whole = kind[static_cast<size_t>(wanted.index)];
  if (wanted.parts > 0 && wanted.part >= wanted.parts) {
    fail(ErrorKind::kDevice, "no device {}: the last of {} parts is {}/{}[{}]", name, wanted.parts,
         whole.info.name, wanted.parts, wanted.parts - 1);
  }
  if (wanted.parts <= 1) return {whole};
  const std::vector<cl::Device> devices = partition(whole, wanted.parts);
  std::vector<FoundDevice> parts;
  for (int part = 0; part < wanted.parts; ++part) {
    if (wanted.part >= 0 && part != wanted.part) continue;
    parts.push_back(part_of(whole, devices[static_cast<size_t>(part)], part, wanted.parts));
  }
  return parts;
}

bool share_hardware(const FoundDevice& first, const FoundDevice& second) {
  if (first.index != second.index) return false;
  const auto [begin, end] = unit_range(first);
  const auto [other_begin, other_end] = unit_range(second);
  return begin < other_end && other_begin < end;
}

}  // namespace quintet::opencl
