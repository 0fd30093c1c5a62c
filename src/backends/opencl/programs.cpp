#include "backends/opencl/programs.h"

#include <fmt/format.h>

#include <sstream>
#include <utility>

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

bool divides_exactly(const cl::Device& device) {
  return (device.getInfo<CL_DEVICE_SINGLE_FP_CONFIG>() & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
}

}  // namespace

Programs::Programs(const FoundDevice& device, cl::Context context, std::filesystem::path folder)
    : device_(device), context_(std::move(context)), folder_(std::move(folder)) {}

std::string Programs::options(const std::string& defines) const {
  std::string text = "-cl-std=CL1.2";
  if (divides_exactly(device_.device)) text += " -cl-fp32-correctly-rounded-divide-sqrt";
  return defines.empty() ? text : text + " " + defines;
}

Programs::Program& Programs::program(const std::string& source, const std::string& defines) {
  const auto key = std::make_pair(source, defines);
  const auto found = programs_.find(key);
  if (found != programs_.end()) return found->second;
  cl::Program made(context_, text_of(source));
  try {
    made.build(device_.device, options(defines).c_str());
  } catch (const cl::BuildError& error) {
    const auto logs = error.getBuildLog();
    fail(ErrorKind::kDevice, "{}: kernels/{}.cl does not compile with {} ({}):{}",
         device_.info.name, source, options(defines), error_text(error.err()),
         first_lines(logs.empty() ? "" : logs.front().second));
  }
  return programs_.emplace(key, Program{std::move(made)}).first->second;
}

cl::Kernel& Programs::kernel(const std::string& source, const std::string& name,
                             const std::string& defines) {
  auto key = std::make_tuple(source, name, defines);
  const auto found = kernels_.find(key);
  if (found != kernels_.end()) return found->second;
  return guarded(device_.info.name, [&]() -> cl::Kernel& {
    cl::Kernel made(program(source, defines).program, name.c_str());
    return kernels_.emplace(std::move(key), std::move(made)).first->second;
  });
}

}  // namespace quintet::opencl
