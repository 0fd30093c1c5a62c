// Measured device speeds, kept in a small cache on disk: a calibration runs once per machine.
#ifndef QUINTET_PLACEMENT_CALIBRATION_H_
#define QUINTET_PLACEMENT_CALIBRATION_H_

#include <filesystem>
#include <functional>
#include <string>

#include "core/cache_folder.h"
#include "core/device_speed.h"

namespace quintet {

// What a speed depends on.
struct CalibrationKey {
  std::string hardware;  // DeviceInfo::hardware: CPU model, number and kind of cores
  int threads = 0;
  std::string version;  // of the library
};

// The speed kept for `key`, or else what `measure` gives, which is then kept. A cache that cannot
// be read or written, or holds nonsense, is as good as none: only `measure` throws.
DeviceSpeed calibrate(const CalibrationKey& key, const std::function<DeviceSpeed()>& measure,
                      const std::filesystem::path& folder = cache_folder());

}  // namespace quintet

#endif  // QUINTET_PLACEMENT_CALIBRATION_H_
