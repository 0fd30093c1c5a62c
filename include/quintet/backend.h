// The entry point of a backend module: a shared library that drives one kind of device. It exports
//
//   extern "C" const QuintetBackendV1* quintet_backend_v1(void);
//
// and is found as libquintet_<name>.so beside the program, in its ../lib/quintet, in the folders of
// QUINTET_BACKEND_PATH, or named by --backend. What it opens are objects of class quintet::Device
// (backends/device.h), so it is compiled against the headers of the quintet that loads it and with
// the same kind of compiler; `device_version` tells apart what does not fit.
//
// The functions are called from any thread and do not throw: they return a status and write a
// message that says what, where and what to do. `message` holds kQuintetMessageBytes.
#ifndef QUINTET_BACKEND_H_
#define QUINTET_BACKEND_H_

#include <cstddef>
#include <cstdint>

#define QUINTET_BACKEND_EXPORT extern "C" __attribute__((visibility("default")))

constexpr uint32_t kQuintetBackendVersion = 1;  // of this header
constexpr uint32_t kQuintetDeviceVersion = 1;   // of class Device; changes with every change to it
constexpr size_t kQuintetMessageBytes = 1024;

enum QuintetStatus : int32_t {
  kQuintetOk = 0,
  kQuintetNoDevice = 1,  // no such device, no driver
  kQuintetNoMemory = 2,
  kQuintetFailed = 3,
};

// What there is to know of a device without opening it. Texts end with a zero.
struct QuintetDeviceFacts {
  char name[64];          // its one spelling: "opencl:0", "opencl:0/2[1]"
  char description[256];  // platform, name, driver, memory, units; for people
  char hardware[256];     // all that its speed depends on: the key of the calibration cache
  char
      memory_pool[64];  // devices of one pool share their memory; "host": the main memory; "": none
  uint64_t total_bytes;
  uint64_t free_bytes;
  int32_t n_units;       // compute units
  int32_t asynchronous;  // 1: Device::asynchronous(), so two micro-batches are under way at a time
};

struct QuintetOpenOptions {
  int32_t threads;  // for devices that are sets of cores; 0: the device's choice
};

struct QuintetBackendV1 {
  uint32_t struct_bytes;    // sizeof(QuintetBackendV1)
  uint32_t device_version;  // kQuintetDeviceVersion of the headers it was compiled against
  const char* names;        // prefixes of its devices' names, its own first: "opencl,xpu"

  // Devices NAME:0 ... NAME:count-1 of the first prefix.
  QuintetStatus (*device_count)(int32_t* count, char* message);

  // The index-th of the devices that `name` stands for: of most names there is one, of "opencl:0/2"
  // there are two. Past the last: kQuintetNoDevice with an empty message.
  QuintetStatus (*find_device)(const char* name, int32_t index, QuintetDeviceFacts* facts,
                               char* message);

  // Opens the device of that (one) spelling: *device is a quintet::Device*, deleted by the caller.
  QuintetStatus (*open_device)(const char* name, const QuintetOpenOptions* options, void** device,
                               char* message);

  // May each be null, where there is no such thing.
  // Whether the two devices use the same hardware, so that no run may have both.
  bool (*share_hardware)(const char* first, const char* second);
  void (*manual_seed)(uint64_t seed);  // of all its devices' random numbers
  void (*empty_cache)();               // gives memory kept for reuse back to the system
  // Bytes of a device: all, still to be had, and held by this process's tensors and weights.
  QuintetStatus (*memory)(const char* name, uint64_t* total, uint64_t* free, uint64_t* used,
                          char* message);
};

#endif  // QUINTET_BACKEND_H_
