// A backend of one's own, whole: two devices "mydev:0" and "mydev:1" that compute with the plain
// loops of quintet's yardstick, in a memory of their own as far as the rest of quintet can see.
// Replace MyDevice by a class that drives your hardware; the rest is what any module needs.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <mutex>
#include <string>
#include <vector>

#include "backends/reference/reference_device.h"
#include "quintet/backend.h"

namespace {

constexpr int32_t kDevices = 2;
constexpr uint64_t kBytesOfDevice = uint64_t{4} << 30;

int index_of(const std::string& name) {
  for (int i = 0; i < kDevices; ++i) {
    if (name == "mydev:" + std::to_string(i) || (i == 0 && name == "mydev")) return i;
  }
  return -1;
}

QuintetStatus no_such_device(const char* name, char* message) {
  std::snprintf(message, kQuintetMessageBytes, "%s: no such device; there are mydev:0 and mydev:1",
                name);
  return kQuintetNoDevice;
}

class MyDevice : public quintet::ReferenceDevice {
 public:
  explicit MyDevice(int index);
  ~MyDevice() override;

  // Its tensors are not the host's: rows that pass to another device are copied.
  bool host_memory() const override { return false; }
  quintet::MemoryInfo memory() const override {
    quintet::MemoryInfo info = ReferenceDevice::memory();
    info.total = kBytesOfDevice;
    info.free = kBytesOfDevice - std::min<uint64_t>(kBytesOfDevice, info.used);
    return info;
  }
};

// Every device that is open; a program may open one several times, once for each model.
std::mutex open_mutex;
std::vector<MyDevice*> open_devices;

MyDevice::MyDevice(int index) : ReferenceDevice("mydev:" + std::to_string(index)) {
  const std::scoped_lock lock(open_mutex);
  open_devices.push_back(this);
}

MyDevice::~MyDevice() {
  const std::scoped_lock lock(open_mutex);
  std::erase(open_devices, this);
}

QuintetStatus device_count(int32_t* count, char* /*message*/) {
  *count = kDevices;
  return kQuintetOk;
}

QuintetStatus find_device(const char* name, int32_t index, QuintetDeviceFacts* facts,
                          char* message) {
  const int found = index_of(name);
  if (found < 0) return no_such_device(name, message);
  if (index > 0) return kQuintetNoDevice;  // a name stands for one device here
  std::snprintf(facts->name, sizeof(facts->name), "mydev:%d", found);
  std::snprintf(facts->description, sizeof(facts->description), "an example, plain loops");
  std::snprintf(facts->hardware, sizeof(facts->hardware), "mydev");
  std::snprintf(facts->memory_pool, sizeof(facts->memory_pool), "mydev:%d", found);
  facts->total_bytes = kBytesOfDevice;
  facts->free_bytes = kBytesOfDevice;
  facts->n_units = 1;
  return kQuintetOk;
}

QuintetStatus open_device(const char* name, const QuintetOpenOptions* /*options*/, void** device,
                          char* message) {
  const int index = index_of(name);
  if (index < 0) return no_such_device(name, message);
  try {
    *device = static_cast<quintet::Device*>(new MyDevice(index));
    return kQuintetOk;
  } catch (const std::exception& error) {  // nothing may be thrown through this border
    std::snprintf(message, kQuintetMessageBytes, "%s: %s", name, error.what());
    return kQuintetNoMemory;
  }
}

void manual_seed(uint64_t seed) {
  const std::scoped_lock lock(open_mutex);
  for (MyDevice* device : open_devices) device->manual_seed(seed);
}

void empty_cache() {
  const std::scoped_lock lock(open_mutex);
  for (MyDevice* device : open_devices) device->empty_cache();
}

QuintetStatus memory(const char* name, uint64_t* total, uint64_t* free, uint64_t* used,
                     char* message) {
  const int index = index_of(name);
  if (index < 0) return no_such_device(name, message);
  const std::scoped_lock lock(open_mutex);
  *total = kBytesOfDevice;
  *used = 0;
  for (const MyDevice* device : open_devices) {
    if (index_of(device->name()) == index) *used += device->memory().used;
  }
  *free = *total - std::min(*total, *used);
  return kQuintetOk;
}

constexpr QuintetBackendV1 kEntry = {
    .struct_bytes = sizeof(QuintetBackendV1),
    .device_version = kQuintetDeviceVersion,
    .names = "mydev",
    .device_count = device_count,
    .find_device = find_device,
    .open_device = open_device,
    .share_hardware = nullptr,
    .manual_seed = manual_seed,
    .empty_cache = empty_cache,
    .memory = memory,
};

}  // namespace

QUINTET_BACKEND_EXPORT const QuintetBackendV1* quintet_backend_v1() { return &kEntry; }
