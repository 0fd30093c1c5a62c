// Times a device's products and attention on a few shapes, for the planner.
#ifndef QUINTET_BACKENDS_MEASURE_H_
#define QUINTET_BACKENDS_MEASURE_H_

#include "backends/device.h"
#include "core/device_speed.h"

namespace quintet {

// Takes about 200 ms (a device of less than 2 GFLOP/s: more, but far below 2 s; one that builds
// kernels first: what that takes beside) and 50 MiB of the device, all given back; on a thread of
// its own. The fastest of several runs counts, so that a busy machine spoils little.
DeviceSpeed measure_device(Device& device);

}  // namespace quintet

#endif  // QUINTET_BACKENDS_MEASURE_H_
