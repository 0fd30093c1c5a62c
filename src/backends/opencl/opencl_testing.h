// What the tests of this folder share: the device under test, or why there is none.
#ifndef QUINTET_BACKENDS_OPENCL_OPENCL_TESTING_H_
#define QUINTET_BACKENDS_OPENCL_OPENCL_TESTING_H_

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backends/opencl/platforms.h"
#include "backends/opencl/queue_session.h"

namespace quintet::opencl {

// Empty where this machine has no OpenCL device.
inline std::vector<FoundDevice> devices_under_test() {
  try {
    return all_devices();
  } catch (const Error&) {
    return {};
  }
}

class OpenclTest : public testing::Test {
 protected:
  void SetUp() override {
    devices = devices_under_test();
    if (devices.empty()) GTEST_SKIP() << "no OpenCL device on this machine";
  }
  const FoundDevice& device() const { return devices.front(); }

  std::vector<FoundDevice> devices;
};

// A kernel of the test's own.
inline cl::Kernel test_kernel(const QueueSession& session, const char* text, const char* name) {
  cl::Program program(session.context(), text);
  program.build("-cl-std=CL1.2");
  return {program, name};
}

}  // namespace quintet::opencl

#endif  // QUINTET_BACKENDS_OPENCL_OPENCL_TESTING_H_
