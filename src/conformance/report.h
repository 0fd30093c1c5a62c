// The results of a run as people and programs read them.
#ifndef QUINTET_CONFORMANCE_REPORT_H_
#define QUINTET_CONFORMANCE_REPORT_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "conformance/result.h"
#include "conformance/spec.h"
#include "quintet/devices.h"

namespace quintet::conformance {

struct Report {
  std::string version;
  DeviceSpec spec;
  std::vector<DeviceInfo> devices;
  std::vector<CellResult> results;  // in the order of classes and tests
  double seconds = 0;

  size_t count(Outcome outcome) const;
  bool passed() const { return count(Outcome::kFail) == 0; }
};

// Devices, a row for each test and a column for each class, then what failed and why, what was
// skipped and why, and the sum.
std::string report_text(const Report& report, bool colour);
nlohmann::ordered_json report_json(const Report& report);

nlohmann::ordered_json to_json(const CellResult& result);
CellResult cell_result_from(const nlohmann::json& value);
nlohmann::ordered_json to_json(const DeviceInfo& device);
DeviceInfo device_info_from(const nlohmann::json& value);

}  // namespace quintet::conformance

#endif  // QUINTET_CONFORMANCE_REPORT_H_
