// The kernels of one device: compiled once, kept on disk per device and driver.
#ifndef QUINTET_BACKENDS_OPENCL_PROGRAMS_H_
#define QUINTET_BACKENDS_OPENCL_PROGRAMS_H_

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "backends/opencl/kernel_cache.h"
#include "backends/opencl/platforms.h"

namespace quintet::opencl {

// Whether the driver keeps all that it compiles on disk itself. PoCL does, and specialises kernels
// when they are first enqueued with a work-group size; handing out a program's binary makes it
// compile every kernel once more, for any size, which takes seconds.
bool keeps_own_cache(const cl::Device& device);

class Programs {
 public:
  // folder: where binaries are kept; empty: nowhere.
  Programs(const FoundDevice& device, cl::Context context, const std::filesystem::path& folder);

  // Throws Error(kDevice) with the first lines of the compiler's log.
  cl::Kernel& kernel(const char* source, const char* name, const std::string& defines);
  // A program of any text; `title` names it in messages.
  cl::Program build(const std::string& title, const std::string& text, const std::string& defines);

  int compiled() const { return compiled_; }  // programs that were not found on disk

 private:
  // Looks kernels up without making strings.
  struct Less {
    using is_transparent = void;
    using Views = std::tuple<std::string_view, std::string_view, std::string_view>;
    template <typename First, typename Second>
    bool operator()(const First& first, const Second& second) const {
      return Views(first) < Views(second);
    }
  };

  void keep(const std::string& key, const cl::Program& program) const;

  const FoundDevice device_;
  const cl::Context context_;
  const KernelCache cache_;
  const std::string hardware_;  // all that a binary depends on but text and options
  const std::string options_;   // of every program
  int compiled_ = 0;
  std::map<std::pair<std::string, std::string>, cl::Program> programs_;  // by source, defines
  std::map<std::tuple<std::string, std::string, std::string>, cl::Kernel, Less> kernels_;
};

}  // namespace quintet::opencl

#endif  // QUINTET_BACKENDS_OPENCL_PROGRAMS_H_
