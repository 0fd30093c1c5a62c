// A run of the suite: checkpoints, devices, and the cells one after the other.
#ifndef QUINTET_CONFORMANCE_RUN_H_
#define QUINTET_CONFORMANCE_RUN_H_

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "conformance/report.h"
#include "conformance/suite.h"

namespace quintet::conformance {

struct RunOptions {
  DeviceSpec spec;
  std::vector<std::string> classes;  // empty: all
  std::vector<std::string> tests;    // empty: all
  std::chrono::seconds limit{300};   // for one test of one class
};

// Called before each cell.
using Progress = std::function<void(size_t done, size_t n_cells, const std::string& model_class,
                                    const std::string& test)>;

// All but the report's version. Throws Error(kUsage) on a class or test that there is not, and
// Error(kDevice) where a device is missing.
Report run_suite(const RunOptions& options, const Progress& progress);

}  // namespace quintet::conformance

#endif  // QUINTET_CONFORMANCE_RUN_H_
