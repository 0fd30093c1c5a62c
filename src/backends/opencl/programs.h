// The kernels of one device: compiled once, kept on disk per device and driver.
#ifndef QUINTET_BACKENDS_OPENCL_PROGRAMS_H_
#define QUINTET_BACKENDS_OPENCL_PROGRAMS_H_

#include <filesystem>
#include <map>
#include <string>
#include <tuple>

#include "backends/opencl/platforms.h"

namespace quintet::opencl {

class Programs {
 public:
  // folder: where binaries are kept; empty: nowhere.
  Programs(const FoundDevice& device, cl::Context context, std::filesystem::path folder);

  // Throws Error(kDevice) with the first lines of the compiler's log.
  cl::Kernel& kernel(const std::string& source, const std::string& name,
                     const std::string& defines);

 private:
  struct Program {
    cl::Program program;
  };
  Program& program(const std::string& source, const std::string& defines);
  std::string options(const std::string& defines) const;

  const FoundDevice device_;
  const cl::Context context_;
  const std::filesystem::path folder_;
  std::map<std::pair<std::string, std::string>, Program> programs_;  // by source, defines
  std::map<std::tuple<std::string, std::string, std::string>, cl::Kernel> kernels_;
};

}  // namespace quintet::opencl

#endif  // QUINTET_BACKENDS_OPENCL_PROGRAMS_H_
