// Modules for the loader's tests, one for each QUINTET_TEST_MODULE: what can be wrong with one, and
// one (6) that works as far as opening a device.
#include <cstdio>
#include <cstring>

#include "quintet/backend.h"

namespace {

QuintetStatus device_count(int32_t* count, char* /*message*/) {
  *count = QUINTET_TEST_MODULE == 7 ? 1 << 30 : 1;
  return kQuintetOk;
}

// "toy:0" is a device, "toy:0/2" two, "toy:endless" ever more; of "toy:long" no text ends;
// "toy:nameless" has no name, "toy:alien" another's, "toy:odd" one that is none.
QuintetStatus find_device(const char* name, int32_t index, QuintetDeviceFacts* facts,
                          char* message) {
  const bool halves = std::strcmp(name, "toy:0/2") == 0;
  const bool endless = std::strcmp(name, "toy:endless") == 0;
  if (index >= (halves ? 2 : 1) && !endless) return kQuintetNoDevice;
  if (std::strcmp(name, "toy:silent") == 0) return kQuintetFailed;
  if (std::strcmp(name, "toy:9") == 0) {
    std::snprintf(message, kQuintetMessageBytes, "toy:9: no such device; there is toy:0");
    return kQuintetNoDevice;
  }
  std::snprintf(facts->memory_pool, sizeof(facts->memory_pool), "host");
  facts->total_bytes = 1000;
  facts->n_units = 3;
  if (std::strcmp(name, "toy:nameless") == 0) return kQuintetOk;
  if (std::strcmp(name, "toy:long") == 0) {
    std::memset(facts, 'x', offsetof(QuintetDeviceFacts, total_bytes));
    std::memcpy(facts->name, "toy:", 4);
  } else if (std::strcmp(name, "toy:alien") == 0) {
    std::snprintf(facts->name, sizeof(facts->name), "cpu:0");
  } else if (std::strcmp(name, "toy:odd") == 0) {
    std::snprintf(facts->name, sizeof(facts->name), "toy:\xff\n");
  } else if (halves) {
    std::snprintf(facts->name, sizeof(facts->name), "%s[%d]", name, index);
  } else {
    std::snprintf(facts->name, sizeof(facts->name), "%s", name);
  }
  return kQuintetOk;
}

QuintetStatus open_device(const char* name, const QuintetOpenOptions* /*options*/, void** device,
                          char* message) {
  *device = nullptr;
  if (std::strcmp(name, "toy:1") == 0) return kQuintetOk;
  if (std::strcmp(name, "toy:2") == 0) {
    std::memset(message, 'x', kQuintetMessageBytes);
    return kQuintetFailed;
  }
  std::snprintf(message, kQuintetMessageBytes, "the cable is unplugged");
  return kQuintetNoMemory;
}

bool share_hardware(const char* /*first*/, const char* /*second*/) { return true; }

QuintetStatus memory(const char* /*name*/, uint64_t* total, uint64_t* free, uint64_t* used,
                     char* /*message*/) {
  *total = 1000;
  *free = 958;
  *used = 42;
  return kQuintetOk;
}

constexpr QuintetBackendV1 kWorks = {
    .struct_bytes = sizeof(QuintetBackendV1),
    .device_version = kQuintetDeviceVersion,
    .names = "toy,plaything",
    .device_count = device_count,
    .find_device = find_device,
    .open_device = open_device,
    .share_hardware = share_hardware,
    .manual_seed = nullptr,
    .empty_cache = nullptr,
    .memory = memory,
};

#if QUINTET_TEST_MODULE == 2
constexpr QuintetBackendV1 changed() {
  QuintetBackendV1 entry = kWorks;
  entry.device_version = kQuintetDeviceVersion + 1;
  return entry;
}
#elif QUINTET_TEST_MODULE == 3
constexpr QuintetBackendV1 changed() {
  QuintetBackendV1 entry = kWorks;
  entry.open_device = nullptr;
  return entry;
}
#elif QUINTET_TEST_MODULE == 4
constexpr QuintetBackendV1 changed() {
  QuintetBackendV1 entry = kWorks;
  entry.names = "Toy:1";
  return entry;
}
#elif QUINTET_TEST_MODULE == 5
constexpr QuintetBackendV1 changed() {
  QuintetBackendV1 entry = kWorks;
  entry.names = "cpu";
  return entry;
}
#elif QUINTET_TEST_MODULE == 6
constexpr QuintetBackendV1 changed() { return kWorks; }
#else
constexpr QuintetBackendV1 changed() {
  QuintetBackendV1 entry = kWorks;
  entry.names = QUINTET_TEST_MODULE == 7 ? "many" : "other,plaything";
  return entry;
}
#endif

constexpr QuintetBackendV1 kEntry = changed();

}  // namespace

#if QUINTET_TEST_MODULE == 0
QUINTET_BACKEND_EXPORT const void* another_entry_point() { return &kEntry; }
#elif QUINTET_TEST_MODULE == 1
QUINTET_BACKEND_EXPORT const QuintetBackendV1* quintet_backend_v1() {
  return kEntry.names == nullptr ? &kEntry : nullptr;
}
#else
QUINTET_BACKEND_EXPORT const QuintetBackendV1* quintet_backend_v1() { return &kEntry; }
#endif
