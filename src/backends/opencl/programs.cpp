#include "backends/opencl/programs.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <sstream>
#include <string_view>

#include "backends/opencl/kernel_texts.h"
#include "backends/opencl/opencl_error.h"
#include "core/error.h"

namespace quintet::opencl {
namespace {

constexpr int kLogLines = 12;

// kernels/<source>.cl behind the headers.
std::string text_of(const std::string& source) {
  std::string text;
  for (const KernelText& part : kernel_texts()) {
    const bool header = part.name.ends_with(".h");
    if (header || part.name == source + ".cl") text.append(part.text).append("\n");
  }
  return text;
}

std::string first_lines(const std::string& log) {
  std::istringstream lines(log);
  std::string text;
  std::string line;
  for (int i = 0; i < kLogLines && std::getline(lines, line); ++i) text += "\n  " + line;
  return text;
}

std::string hardware_of(const FoundDevice& device) {
  return fmt::format("{} | {} | {} units", device.info.hardware,
                     device.device.getInfo<CL_DEVICE_VERSION>(), device.info.n_cores);
}

std::string options_of(const cl::Device& device) {
  std::string options = "-cl-std=CL1.2";
  if ((device.getInfo<CL_DEVICE_SINGLE_FP_CONFIG>() & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0) {
    options += " -cl-fp32-correctly-rounded-divide-sqrt";
  }
  return options;
}

}  // namespace

bool keeps_own_cache(const cl::Device& device) {
  const cl::Platform platform(device.getInfo<CL_DEVICE_PLATFORM>());
  return platform.getInfo<CL_PLATFORM_NAME>().starts_with("Portable Computing Language");
}

Programs::Programs(const FoundDevice& device, cl::Context context,
                   const std::filesystem::path& folder)
    : device_(device),
      context_(std::move(context)),
      cache_(folder),
      hardware_(hardware_of(device)),
      options_(options_of(device.device)) {}

cl::Program Programs::build(const std::string& title, const std::string& text,
                            const std::string& defines) {
  const std::string options = defines.empty() ? options_ : options_ + " " + defines;
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  const std::string key =
      fmt::format("{} | {} | {:016x}{:016x}", hardware_, options, hash.high64, hash.low64);
  if (const auto binary = cache_.load(key)) {
    // A driver that does not want what it made itself gets the text.
    try {
      cl::Program kept(context_, {device_.device}, {*binary});
      kept.build(device_.device, options.c_str());
      return kept;
    } catch (const cl::Error&) {
    }
  }
  ++compiled_;
  cl::Program made(context_, text);
  try {
    made.build(device_.device, options.c_str());
  } catch (const cl::BuildError& error) {
    const auto logs = error.getBuildLog();
    fail(ErrorKind::kDevice, "{}: {} does not compile with {} ({}):{}", device_.info.name, title,
         options, error_text(error.err()), first_lines(logs.empty() ? "" : logs.front().second));
  }
  if (cache_.keeps()) keep(key, made);
  return made;
}

void Programs::keep(const std::string& key, const cl::Program& program) const {
  try {
    const auto binaries = program.getInfo<CL_PROGRAM_BINARIES>();
    if (!binaries.empty()) cache_.store(key, binaries.front());
  } catch (const cl::Error&) {
    // a driver that does not hand binaries out compiles anew each time
  }
}

cl::Kernel& Programs::kernel(const char* source, const char* name, const std::string& defines) {
  using Key = std::tuple<std::string_view, std::string_view, std::string_view>;
  const auto found = kernels_.find(Key{source, name, defines});
  if (found != kernels_.end()) return found->second;
  return guarded(device_.info.name, [&]() -> cl::Kernel& {
    const auto key = std::make_pair(std::string(source), defines);
    auto program = programs_.find(key);
    if (program == programs_.end()) {
      const std::string title = fmt::format("kernels/{}.cl", source);
      program = programs_.emplace(key, build(title, text_of(source), defines)).first;
    }
    cl::Kernel made(program->second, name);
    return kernels_.emplace(std::make_tuple(source, name, defines), std::move(made)).first->second;
  });
}

}  // namespace quintet::opencl
