#include "backends/opencl/queues.h"

#include <map>
#include <mutex>
#include <utility>

namespace quintet::opencl {
namespace {

struct Idle {
  std::mutex mutex;
  std::multimap<std::string, Queues> queues;  // by the device's name
};

Idle& idle() {
  static Idle* const kept = new Idle;  // outlives the driver's threads
  return *kept;
}

}  // namespace

Queues borrow_queues(const FoundDevice& device) {
  {
    const std::scoped_lock lock(idle().mutex);
    const auto found = idle().queues.find(device.info.name);
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
          .copies = cl::CommandQueue(context, device.device)};
}

void give_back_queues(const std::string& device_name, Queues queues) {
  const std::scoped_lock lock(idle().mutex);
  idle().queues.emplace(device_name, std::move(queues));
}

}  // namespace quintet::opencl
