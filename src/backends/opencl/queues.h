// The context of a device with its queues and programs. They are lent to sessions and taken back,
// never released: a model that is laid out anew finds its kernels built, and after clFinish has
// returned, PoCL's threads still drop events, which reach into their queue and its context.
#ifndef QUINTET_BACKENDS_OPENCL_QUEUES_H_
#define QUINTET_BACKENDS_OPENCL_QUEUES_H_

#include <filesystem>
#include <memory>
#include <string>

#include "backends/opencl/platforms.h"
#include "backends/opencl/programs.h"

namespace quintet::opencl {

struct Queues {
  cl::Device device;
  cl::Context context;
  cl::CommandQueue ops;
  cl::CommandQueue copies;
  std::shared_ptr<Programs> programs;
};

// Those of an earlier session on the device that kept its kernels in the same folder, else new
// ones. Throws cl::Error.
Queues borrow_queues(const FoundDevice& device, const std::filesystem::path& kernel_folder);
// All that was enqueued is done.
void give_back_queues(const std::string& device_name, const std::filesystem::path& kernel_folder,
                      Queues queues);

}  // namespace quintet::opencl

#endif  // QUINTET_BACKENDS_OPENCL_QUEUES_H_
