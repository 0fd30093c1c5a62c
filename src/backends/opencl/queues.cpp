#include "backends/opencl/queues.h"

#include <map>
#include <mutex>
#include <utility>

namespace quintet::opencl {
namespace {

using Key =
    std::pair<std::string, std::filesystem::path>;  // the device's name, its kernels' folder

struct Idle {
  std::mutex mutex;
  std::multimap<Key, Queues> queues;
};

Idle& idle() {
  static Idle* const kept = new Idle;  // outlives the driver's threads
  return *kept;
}

}  // namespace

Queues borrow_queues(const FoundDevice& device, const std::filesystem::path& kernel_folder) {
  {
    const std::scoped_lock lock(idle().mutex);
    const auto found = idle().queues.find(Key(device.info.name, kernel_folder));
    if (found != idle().queues.end()) {
      Queues queues = std::move(found->second);
      idle().queues.erase(found);
      return queues;
    }
  }
  const cl::Context context(device.device);
  return {.device = device.device,
          .context = context,
          .ops = cl::CommandQueue(context, device.device),
          .copies = cl::CommandQueue(context, device.device),
          .programs = std::make_shared<Programs>(device, context, kernel_folder)};
}

void give_back_queues(const std::string& device_name, const std::filesystem::path& kernel_folder,
                      Queues queues) {
  const std::scoped_lock lock(idle().mutex);
  idle().queues.emplace(Key(device_name, kernel_folder), std::move(queues));
}

}  // namespace quintet::opencl
