// Backends that break one promise each, to see that the suite notices: devices "broken:0" and
// "broken:1" are the yardstick's, but for the fault that QUINTET_BROKEN names.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "backends/reference/reference_device.h"
#include "quintet/backend.h"

namespace {

bool fault(const char* name) {
  const char* const wanted = std::getenv("QUINTET_BROKEN");
  return wanted != nullptr && std::string(wanted) == name;
}

class BrokenDevice : public quintet::ReferenceDevice {
 public:
  explicit BrokenDevice(const std::string& name)
      : ReferenceDevice(name), second_(name == "broken:1") {}

  bool host_memory() const override { return false; }

  // "numbers": the second device is off by a little; "crash": it ends the program.
  void linear(const quintet::Tensor& x, const quintet::Weight& w, const quintet::Epilogue& epilogue,
              const quintet::Tensor& y) override {
    ReferenceDevice::linear(x, w, epilogue, y);
    if (second_ && fault("crash")) std::abort();
    if (second_ && fault("numbers")) *y.row<float>(0) += 1e-3F;
  }

  // "stale": what lies on the second device arrives as zeros.
  void download(const quintet::Tensor& src, void* host) override {
    ReferenceDevice::download(src, host);
    const auto n = static_cast<size_t>(src.rows() * src.cols());
    if (second_ && fault("stale")) std::fill_n(static_cast<float*>(host), n, 0.0F);
  }

  // "leak": what is packed is never given back, as far as anybody can see.
  std::unique_ptr<quintet::Weight> pack(std::span<const quintet::HostView> parts,
                                        quintet::PackOptions options) override {
    auto weight = ReferenceDevice::pack(parts, options);
    if (fault("leak")) leaked() += 64;
    return weight;
  }
  static uint64_t& leaked() {
    static uint64_t bytes = 0;
    return bytes;
  }

 private:
  bool second_;
};

QuintetStatus device_count(int32_t* count, char* /*message*/) {
  *count = fault("count") ? 3 : 2;
  return kQuintetOk;
}

// "names": any name is a device.
QuintetStatus find_device(const char* name, int32_t index, QuintetDeviceFacts* facts,
                          char* message) {
  if (index > 0) return kQuintetNoDevice;
  const std::string given = name;
  if (given != "broken:0" && given != "broken:1" && !fault("names")) {
    std::snprintf(message, kQuintetMessageBytes, "%s: no such device; there are broken:0, broken:1",
                  name);
    return kQuintetNoDevice;
  }
  std::snprintf(facts->name, sizeof(facts->name), "%s", name);
  std::snprintf(facts->description, sizeof(facts->description), "broken on purpose");
  std::snprintf(facts->hardware, sizeof(facts->hardware), "broken");
  facts->total_bytes = facts->free_bytes = uint64_t{1} << 30;
  facts->n_units = 1;
  return kQuintetOk;
}

std::vector<BrokenDevice*> open_devices;

class CountedDevice : public BrokenDevice {
 public:
  explicit CountedDevice(const std::string& name) : BrokenDevice(name) {
    open_devices.push_back(this);
  }
  ~CountedDevice() override { std::erase(open_devices, this); }
};

QuintetStatus open_device(const char* name, const QuintetOpenOptions* /*options*/, void** device,
                          char* /*message*/) {
  *device = static_cast<quintet::Device*>(new CountedDevice(name));
  return kQuintetOk;
}

QuintetStatus memory(const char* name, uint64_t* total, uint64_t* free, uint64_t* used,
                     char* /*message*/) {
  *used = BrokenDevice::leaked();
  for (const BrokenDevice* device : open_devices) {
    if (device->name() == name) *used += device->memory().used;
  }
  *total = uint64_t{1} << 30;
  *free = *total - *used;
  return kQuintetOk;
}

constexpr QuintetBackendV1 kEntry = {
    .struct_bytes = sizeof(QuintetBackendV1),
    .device_version = kQuintetDeviceVersion,
    .names = "broken",
    .device_count = device_count,
    .find_device = find_device,
    .open_device = open_device,
    .share_hardware = nullptr,
    .manual_seed = nullptr,
    .empty_cache = nullptr,
    .memory = memory,
};

}  // namespace

QUINTET_BACKEND_EXPORT const QuintetBackendV1* quintet_backend_v1() { return &kEntry; }
