// The module's entry point: statuses and messages around what platforms.h and QueueSession throw.
#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string>

#include "backends/opencl/ledger.h"
#include "backends/opencl/opencl_device.h"
#include "backends/opencl/opencl_error.h"
#include "backends/opencl/platforms.h"
#include "backends/opencl/queue_session.h"
#include "core/cache_folder.h"
#include "core/error.h"
#include "quintet/backend.h"

namespace quintet::opencl {
namespace {

template <size_t size>
void put(const std::string& text, char (&field)[size]) {
  const size_t length = std::min(text.size(), size - 1);
  std::memcpy(field, text.data(), length);
  field[length] = '\0';
}

void say(const std::string& text, char* message) {
  const size_t length = std::min(text.size(), kQuintetMessageBytes - 1);
  std::memcpy(message, text.data(), length);
  message[length] = '\0';
}

// Runs `work`; what it throws becomes a status and a message.
template <typename Work>
QuintetStatus guard(char* message, QuintetStatus otherwise, Work&& work) {
  say("", message);
  try {
    return work();
  } catch (const Error& error) {
    say(error.what(), message);
    return error.kind() == ErrorKind::kMemory ? kQuintetNoMemory : otherwise;
  } catch (const cl::Error& error) {
    say(std::string(error.what()) + ": " + error_text(error.err()), message);
    return otherwise;
  } catch (const std::bad_alloc&) {
    say("not enough memory", message);
    return kQuintetNoMemory;
  } catch (const std::exception& error) {
    say(error.what(), message);
    return kQuintetFailed;
  }
}

// Of a name that stands for one device.
FoundDevice find_one(const std::string& name) {
  const std::vector<FoundDevice> found = find_devices(name);
  if (found.size() != 1) {
    fail(ErrorKind::kDevice, "\"{}\" stands for {} devices: {} and so on", name, found.size(),
         found.front().info.name);
  }
  return found.front();
}

QuintetStatus device_count(int32_t* count, char* message) {
  *count = 0;
  return guard(message, kQuintetNoDevice, [&] {
    *count = static_cast<int32_t>(all_devices().size());
    return kQuintetOk;
  });
}

QuintetStatus find_device(const char* name, int32_t index, QuintetDeviceFacts* facts,
                          char* message) {
  return guard(message, kQuintetNoDevice, [&] {
    const std::vector<FoundDevice> found = find_devices(name);
    if (index < 0 || static_cast<size_t>(index) >= found.size()) return kQuintetNoDevice;
    const DeviceInfo& info = found[static_cast<size_t>(index)].info;
    put(info.name, facts->name);
    put(info.description, facts->description);
    put(info.hardware, facts->hardware);
    put(info.memory_pool, facts->memory_pool);
    facts->total_bytes = info.total_bytes;
    facts->free_bytes = info.free_bytes;
    facts->n_units = info.n_cores;
    facts->asynchronous = 1;
    return kQuintetOk;
  });
}

QuintetStatus open_device(const char* name, const QuintetOpenOptions* /*options*/, void** device,
                          char* message) {
  return guard(message, kQuintetFailed, [&] {
    const FoundDevice found = find_one(name);
    SessionOptions options;
    const std::filesystem::path caches = cache_folder();
    if (!caches.empty() && !keeps_own_cache(found.device)) {
      options.kernel_folder = caches / "opencl";
    }
    auto session = std::make_unique<QueueSession>(found, options);
    *device = static_cast<Device*>(new OpenclDevice(std::move(session)));
    return kQuintetOk;
  });
}

bool share(const char* first, const char* second) {
  try {
    return share_hardware(find_one(first), find_one(second));
  } catch (const std::exception&) {
    return false;  // opening them will say what is wrong
  }
}

QuintetStatus memory(const char* name, uint64_t* total, uint64_t* free, uint64_t* used,
                     char* message) {
  return guard(message, kQuintetNoDevice, [&] {
    const DeviceInfo info = find_one(name).info;
    *total = info.total_bytes;
    *free = info.free_bytes;
    *used = Ledger::instance().used(info.name);
    return kQuintetOk;
  });
}

}  // namespace
}  // namespace quintet::opencl

QUINTET_BACKEND_EXPORT const QuintetBackendV1* quintet_backend_v1() {
  namespace cl_backend = quintet::opencl;
  static const QuintetBackendV1 kBackend = {
      .struct_bytes = sizeof(QuintetBackendV1),
      .device_version = kQuintetDeviceVersion,
      .names = "opencl,xpu",
      .device_count = cl_backend::device_count,
      .find_device = cl_backend::find_device,
      .open_device = cl_backend::open_device,
      .share_hardware = cl_backend::share,
      .manual_seed = nullptr,
      .empty_cache = nullptr,
      .memory = cl_backend::memory,
  };
  return &kBackend;
}
