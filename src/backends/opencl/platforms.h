// The OpenCL devices of this machine and their names: "opencl:N" counts over all platforms, "xpu:N"
// the Intel GPUs among them, "opencl:N/K" stands for the K parts "opencl:N/K[0]" ... into which its
// compute units are divided.
#ifndef QUINTET_BACKENDS_OPENCL_PLATFORMS_H_
#define QUINTET_BACKENDS_OPENCL_PLATFORMS_H_

#include <string>
#include <vector>

#include "backends/device.h"
#include "backends/opencl/opencl.h"
#include "quintet/devices.h"

namespace quintet::opencl {

struct FoundDevice {
  DeviceInfo info;    // name: the one spelling, never "xpu"
  cl::Device device;  // of a part: the sub-device
  int index = 0;      // N
  int part = -1;      // of `parts`; -1: the whole device
  int parts = 1;
};

// Throws Error(kDevice) where there is no driver at all; none of its devices may be an empty list.
std::vector<FoundDevice> all_devices();
// What a name stands for, one device or the parts of one. Throws Error(kDevice) that lists what
// there is, or says in how many parts a device can be divided.
std::vector<FoundDevice> find_devices(const std::string& name);
bool share_hardware(const FoundDevice& first, const FoundDevice& second);

// Whether its memory is the main memory: a processor, or a GPU without memory of its own.
bool uses_host_memory(const cl::Device& device);
// total and free of a device whose memory is that pool: OpenCL does not say what others use.
MemoryInfo free_memory(const cl::Device& device, const std::string& pool);

}  // namespace quintet::opencl

#endif  // QUINTET_BACKENDS_OPENCL_PLATFORMS_H_
