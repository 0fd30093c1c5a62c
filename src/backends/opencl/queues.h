// The context and the queues of a device. They are lent to sessions and taken back, never released:
// after clFinish has returned, PoCL's threads still drop events, which reach into their queue and
// its context.
#ifndef QUINTET_BACKENDS_OPENCL_QUEUES_H_
#define QUINTET_BACKENDS_OPENCL_QUEUES_H_

#include <string>

#include "backends/opencl/platforms.h"

namespace quintet::opencl {

struct Queues {
  cl::Device device;
  cl::Context context;
  cl::CommandQueue ops;
  cl::CommandQueue copies;
};

// Those of an earlier session on the device, else new ones. Throws cl::Error.
Queues borrow_queues(const FoundDevice& device);
// All that was enqueued is done.
void give_back_queues(const std::string& device_name, Queues queues);

}  // namespace quintet::opencl

#endif  // QUINTET_BACKENDS_OPENCL_QUEUES_H_
