// Times a device's products and attention on a few shapes, for the planner.
#ifndef QUINTET_BACKENDS_MEASURE_H_
#define QUINTET_BACKENDS_MEASURE_H_

#include "backends/device.h"
#include "core/device_speed.h"

namespace quintet {

// Takes at most about 150 ms and 20 MiB of the device, all given back. Medians of several runs.
DeviceSpeed measure_device(Device& device);

}  // namespace quintet

#endif  // QUINTET_BACKENDS_MEASURE_H_
